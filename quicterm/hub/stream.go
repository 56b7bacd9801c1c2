package hub

// MaxData bounds the bytes of a stream in one message.
const MaxData = 32 << 10

// frameHeader is the length of what is before the bytes of a stream in a message.
const frameHeader = 9
