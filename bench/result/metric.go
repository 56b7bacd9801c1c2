package result

// A Metric is what is measured.
type Metric struct {
	Meaning      string // for people
	MoreIsBetter bool
	Cost         bool // what a session takes, not what it gives
}

var metrics = map[string]Metric{
	"feel":     {Meaning: "from a key until its glyph is on the client's screen, where a program may have predicted it"},
	"truth":    {Meaning: "from a key until the answer of the program on the server is on the client's screen"},
	"vanished": {Meaning: "glyphs that a client has shown and taken away again"},
	"back":     {Meaning: "from the first key after an event until the answer; of output, from the event to a new line"},
	"recovery": {Meaning: "from an event until the server's answer to the first key after it"},
	"gap":      {Meaning: "the longest time without a new line of output after an event"},
	"prompt":   {Meaning: "until the prompt is on the client's screen: from Ctrl-C, or from the start of the client"},
	"moved":    {Meaning: "from an event until the session is reached by the transport that it is to be"},
	"resume":   {Meaning: "from the start of a client that returns until all that the ring keeps has arrived"},
	"append":   {Meaning: "output that a session takes while no client is there", MoreIsBetter: true},
	"woken":    {Meaning: "from a program's read of its terminal until the process that waits for it has ended"},
	"login":    {Meaning: "from the start of a client until the first prompt of a new session"},
	"rate": {Meaning: "output that arrives; in Mbit/s, everything that arrives over the link",
		MoreIsBetter: true},
	"took":           {Meaning: "time until a tool has ended"},
	"whole":          {Meaning: "share of the work of a tool that ends well", MoreIsBetter: true},
	"complete":       {Meaning: "share of the output that arrives", MoreIsBetter: true},
	"of bare stream": {Meaning: "rate, compared with that of one QUIC stream between two processes", MoreIsBetter: true},
	"tcp share":      {Meaning: "the part of what arrives that a TCP connection brings beside a copy", MoreIsBetter: true},
	"of alone":       {Meaning: "rate, compared with that of a session that nobody watches", MoreIsBetter: true},
	"screen":         {Meaning: "from the start of a client that attaches until it shows all that the one before showed"},
	"descriptors":    {Meaning: "more descriptors of client and daemon after the work than before"},
	"threads":        {Meaning: "more threads of client and daemon after the work than before"},
	"opened":         {Meaning: "from the start of a connection through a forward until the target's greeting"},
	"sessions":       {Meaning: "more sessions after the work than before"},

	"qt run":        {Meaning: "a whole process that runs true in a session's shell"},
	"qt send":       {Meaning: "a whole process that types a character"},
	"qt send --key": {Meaning: "a whole process that types Ctrl-U"},
	"qt wait":       {Meaning: "a whole process that waits for what holds already"},
	"qt tail":       {Meaning: "a whole process that prints the output until then"},
	"qt peek":       {Meaning: "a whole process that prints the screen"},

	"wire":           {Cost: true, Meaning: "what is sent, both ways, with the headers of IP and UDP or TCP"},
	"resent":         {Cost: true, Meaning: "share of the bytes from the clients that were sent before"},
	"client cpu":     {Cost: true, Meaning: "CPU time of the client's processes for the whole work"},
	"server cpu":     {Cost: true, Meaning: "the same on the server (holder, daemon), without what runs in the session"},
	"cpu":            {Cost: true, Meaning: "CPU time of both sides for the whole work"},
	"cpu a key":      {Cost: true, Meaning: "CPU time of both sides, for each key"},
	"switches a key": {Cost: true, Meaning: "how often both sides' processes give up the CPU, for each key"},
	"outage wire":    {Cost: true, Meaning: "what is sent, both ways, until the disturbance ends"},
	"own memory":     {Cost: true, Meaning: "memory that no other process shares: of a session, or of its holder"},
	"own growth":     {Cost: true, Meaning: "the same of each end, how much more after a second time than after the first"},
	"of a session":   {Cost: true, Meaning: "memory on the server that no other process shares, of what that of a session is"},
	"idle cpu":       {Cost: true, Meaning: "CPU time of both sides a second, of a session at rest"},
	"client memory":  {Cost: true, Meaning: "memory of the client's processes, with their share of what is shared (Pss)"},
	"server memory":  {Cost: true, Meaning: "the same on the server"},
	"client rss":     {Cost: true, Meaning: "resident memory of a client"},
	"holder rss":     {Cost: true, Meaning: "resident memory of a holder"},
	"daemon rss":     {Cost: true, Meaning: "resident memory of the daemon for each session"},
	"watchers rss":   {Cost: true, Meaning: "resident memory of a watched session's holder, beyond the other's"},
	"daemon growth":  {Cost: true, Meaning: "resident memory of the daemon during an attack, at most, beyond that before"},
	"daemon threads": {Cost: true, Meaning: "threads of the daemon during an attack, at most, beyond those before"},
	"children":       {Cost: true, Meaning: "processes of the daemon that hold no session, at their most"},
	"flood rate":     {Meaning: "packets or connections a second that a flood sends", MoreIsBetter: true},
	"daemon share":   {Cost: true, Meaning: "share of a core that the daemon takes"},
}

// About returns what is known of a metric. Less of an unknown one is better.
func About(metric string) Metric { return metrics[metric] }
