package wire

// A Hint says what the server knows of the program and its terminal. It is ordered with the
// output: a client applies it when it has shown the output up to Out.
type Hint struct {
	Out      uint64        // the last frame of output that was read before the rest was looked up; 0 for none
	In       uint64        // the last frame of this attachment's input that the program had had for a while; 0 for none
	Terminal TerminalFlags // of the session's terminal
	Context  uint16        // a hash of the name of the foreground process; 0 if it is not known
}

// TerminalFlags are modes of a session's terminal, and who reads from it.
type TerminalFlags uint8

const (
	Canonical   TerminalFlags = 1 << iota // ICANON: the kernel edits the line
	Echo                                  // ECHO: the kernel echoes what is typed
	EchoErase                             // ECHOE: an erased character disappears
	EchoControl                           // ECHOCTL: controls are echoed as ^C is
	Signals                               // ISIG: ^C and the like are signals
	Shell                                 // the session's own shell is in the foreground
	Extended                              // IEXTEN: words can be erased
	UsualKeys                             // erase is DEL, kill ^U, word erase ^W, characters are UTF-8
)
