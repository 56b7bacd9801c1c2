package result

// A Metric is what is measured.
type Metric struct {
	Meaning      string // for people
	MoreIsBetter bool
	Cost         bool // it is what a session takes, and not what it gives
}

var metrics = map[string]Metric{
	"feel":     {Meaning: "from a key until its glyph is on the client's screen, where a program may have predicted it"},
	"truth":    {Meaning: "from a key until what the program on the server answers is on the client's screen"},
	"back":     {Meaning: "from the first key that is typed after what happens is over until the server's answer; of output, from its end until a new line"},
	"prompt":   {Meaning: "until the prompt is on the client's screen"},
	"rate":     {Meaning: "output that arrives; in Mbit/s, all that arrives over the link", MoreIsBetter: true},
	"complete": {Meaning: "share of the output that arrives", MoreIsBetter: true},

	"wire":          {Cost: true, Meaning: "what is sent, both ways, with the headers of IP and UDP or TCP"},
	"client cpu":    {Cost: true, Meaning: "time that the client's processes compute"},
	"server cpu":    {Cost: true, Meaning: "the same on the server, without what runs in the session"},
	"client memory": {Cost: true, Meaning: "memory of the client's processes, with their share of what is shared (Pss): of several sessions side by side, each has a part of the program's text"},
	"server memory": {Cost: true, Meaning: "the same on the server"},
}

// About returns what is known of a metric. Less of an unknown one is better.
func About(metric string) Metric { return metrics[metric] }
