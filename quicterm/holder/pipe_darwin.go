package holder

import "os"

// enlarge does nothing: the kernel makes a pipe larger that much is written to.
func enlarge(*os.File) {}
