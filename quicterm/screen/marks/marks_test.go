package marks

import "testing"

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text string
		want Mark
	}{
		{"A", Mark{Prompt, -1}},
		{"A;special_key=1", Mark{Prompt, -1}},                      // fish
		{"A;cl=m;aid=123", Mark{Prompt, -1}},                       // FinalTerm
		{"N;aid=1", Mark{Prompt, -1}},                              // ends the command before it as well
		{"P;k=i", Mark{Prompt, -1}},                                // ghostty
		{"A;redraw=0;k=s", Mark{}},                                 // kitty: a continued line
		{"P;k=r", Mark{}},                                          // a prompt at the right
		{"P;Cwd=/home", Mark{}},                                    // VS Code
		{"B", Mark{Input, -1}},                                     //
		{"I", Mark{Input, -1}},                                     //
		{"C;cmdline=ls", Mark{Output, -1}},                         // kitty
		{"C;cmdline_url=ls%20-l", Mark{Output, -1}},                // fish
		{"D", Mark{End, -1}},                                       //
		{"D;", Mark{End, -1}},                                      //
		{"D;130;aid=1", Mark{End, 130}},                            //
		{"D;256", Mark{End, -1}},                                   //
		{"D;-1", Mark{End, -1}},                                    //
		{"D;aid=1", Mark{End, -1}},                                 //
		{"E;ls;1234", Mark{}},                                      // VS Code: the command line
		{"L", Mark{}}, {"", Mark{}}, {"AB", Mark{}}, {"a", Mark{}}, //
	} {
		if got := Parse(test.text); got != test.want && !(test.want == Mark{} && got.Kind == 0) {
			t.Errorf("%q: %v, want %v", test.text, got, test.want)
		}
	}
}

func TestNotification(t *testing.T) {
	for _, test := range []struct {
		number, text, want string
		ok                 bool
	}{
		{"9", "done", "done", true}, {"9", "4;1;50", "4;1;50", false},
		{"777", "notify;make;it is done", "make: it is done", true}, {"777", "preexec", "preexec", false},
		{"99", "i=1;done", "done", true}, {"99", "done", "", false}, {"0", "title", "", false},
	} {
		if got, ok := Notification(test.number, test.text); ok != test.ok || ok && got != test.want {
			t.Errorf("OSC %s;%s: %q, %v", test.number, test.text, got, ok)
		}
	}
}

func TestLine(t *testing.T) {
	for _, test := range []struct {
		text, want string
		told       bool
	}{
		{"C;cmdline_url=ls%20-l%3b", "ls -l;", true},            // fish, kitty's fish
		{"C;cmdline_url=%", "", false},                          //
		{`C;cmdline=ls\ -l\;\ echo\ \\`, `ls -l; echo \`, true}, // kitty's bash
		{`C;cmdline=$'it\'s\na b\\'`, `it's a b\`, true},        //
		{`C;cmdline=\`, `\`, true},                              //
		{"E;echo a\\x3b b\\\\;nonce", `echo a; b\`, true},       // VS Code
		{"C", "", false}, {"", "", false}, {"D;0", "", false}, {"C;aid=1", "", false},
	} {
		if got, told := Line(test.text); got != test.want || told != test.told {
			t.Errorf("%q: %q, %v, want %q, %v", test.text, got, told, test.want, test.told)
		}
	}
}

func FuzzDirectory(f *testing.F) {
	f.Add("file://h/a", 7, "file://h/%20")
	f.Add("file://h/a", 633, `P;Cwd=\x3`)
	f.Add("%", 1337, "RemoteHost=@[")
	f.Fuzz(func(t *testing.T, before string, number int, text string) {
		directory := Directory(before, number, text)
		if host, path := Path(directory); path != "" && number == 1337 {
			_, again := Path(Directory(directory, 1337, "RemoteHost=x@"+host))
			if again != path && Directory(before, number, text) != before {
				t.Errorf("%q becomes %q with the same host", path, again)
			}
		}
	})
}
