package holder

import (
	"io"
	"os"
)

// growing returns a pipe as it is: the kernel makes it larger if much is written to it.
func growing(pipe *os.File) io.ReadCloser { return pipe }
