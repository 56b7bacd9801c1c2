// Sim plays worlds of bad networks and dying processes: the real clients, daemon and holders over emulated links, on
// virtual time. A seed draws a world: machines, interfaces, sessions, clients, and what happens to them. What the
// README promises is checked all the while, and once more when all is well again.
//
//	go run ./quicterm/sim -seed 7 -trace          the world of a seed, told line by line
//	go run ./quicterm/sim -seed 7 -trace -twice   that it is the same each time
//	go run ./quicterm/sim -seed 7 -native         the same, faster, with other details each time
//	go run ./quicterm/sim -for 10m                worlds of fresh seeds, natively
//	go run ./quicterm/sim -seed 7 -shrink         the fewest faults with which it fails
//	go run ./quicterm/sim -mutations              defects put in one by one: each must be found
//
// The simulation is this package's test; this program builds it, and runs it. For one seed it builds a wasip1
// program, and runs that in one thread with random bytes and a clock that follow from the seed: then goroutines,
// maps and keys do so, too, and a version of Go tells the same story byte for byte each time, on any machine. A
// native run has another order of goroutines and other keys each time. So a failure that comes once counts, also if
// another run of its seed passes: it leaves all its events in a file, with what the processes have logged.
//
// The server's machine has the daemon in its two halves, each of which dies alone: the real monitor with its files, and the
// real server, whose calls to the monitor are encoded and decoded as between two processes (package privsep). Holders are
// real, too. What stands in for the machine is small: sockets and carriers that a killed process loses at once, programs
// that are scripts, and tokens in place of keys, as reading those takes a process of the account.
//
// What is not seen here, and is tested by package e2e: the kernel with its sockets, signals, descriptors and rights, real
// terminals, real disks, and how the processes of a daemon and of a session are started.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The flags.
var (
	seed                     uint64
	lasts                    time.Duration
	trace, shrink, mutations bool
	native, twice            bool
	only                     string
)

func main() {
	// They are not defined before, as the tests have some of the same names.
	flag.Uint64Var(&seed, "seed", 0, "play the world of this seed (default: fresh ones)")
	flag.DurationVar(&lasts, "for", time.Minute, "play worlds of fresh seeds for this long")
	flag.BoolVar(&trace, "trace", false, "tell the story")
	flag.BoolVar(&native, "native", false, "play the seed's world as a program of this system")
	flag.BoolVar(&twice, "twice", false, "play the seed's world twice, and compare what both runs tell")
	flag.BoolVar(&shrink, "shrink", false, "find the fewest faults of the seed's world with which it fails")
	flag.BoolVar(&mutations, "mutations", false, "check that the simulation finds each defect of mutations.go within -for")
	flag.StringVar(&only, "only", "", "with -mutations: only those whose names have this text")
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "sim")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if mutations || shrink { // events of worlds that shall fail
		os.Setenv("TMPDIR", dir)
	}
	if mutations {
		return mutate(dir)
	}
	if seed != 0 && !shrink && !native {
		return playSame(dir)
	}
	program := filepath.Join(dir, "sim.test")
	if err := build(program, nil); err != nil {
		return err
	}
	switch {
	case shrink && seed == 0:
		return errors.New("-shrink needs the seed of a world that fails: -seed N")
	case shrink:
		return reduce(program)
	case seed != 0:
		return play(program, os.Stdout, "-seed", fmt.Sprint(seed))
	}
	first := fmt.Sprint(rand.Uint64() >> 1)
	fmt.Println("the first seed is", first)
	return play(program, os.Stdout, "-for", lasts.String(), "-first", first)
}

// build builds the simulation, with more variables in the environment.
func build(program string, env []string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"test", "-c", "-o", program}, flags...), "./quicterm/sim")...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	return cmd.Run()
}

// play runs the simulation.
func play(program string, out *os.File, flags ...string) error {
	cmd := exec.Command(program, arguments(flags...)...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// arguments are those of the simulation.
func arguments(flags ...string) []string {
	flags = append([]string{"-test.run", "^TestSimulation$", "-test.v", "-test.timeout", "24h"}, flags...)
	if trace {
		flags = append(flags, "-trace")
	}
	return flags
}

// tries is how often a world must pass before it counts as one that does: its details differ.
const tries = 3

// reduce leaves out faults of a world as long as it fails without them, and says which are left.
func reduce(program string) error {
	fails := func(without []string) bool {
		for range tries {
			if play(program, nil, "-seed", fmt.Sprint(seed), "-without", strings.Join(without, ",")) != nil {
				return true
			}
		}
		return false
	}
	out, err := exec.Command(program, "-test.run", "^TestSimulation$", "-seed", fmt.Sprint(seed), "-plan").Output()
	if err != nil {
		return err
	}
	plan := regexp.MustCompile(`(?m)^(\d+): .*$`).FindAllStringSubmatch(string(out), -1)
	if !fails(nil) {
		return fmt.Errorf("the world of seed %d has passed %d times", seed, tries)
	}
	var without []string
	left := make([]bool, len(plan))
	for size := len(plan); size > 0; size /= 2 {
		for at := 0; at < len(plan); at += size {
			more := without
			for i := at; i < min(at+size, len(plan)); i++ {
				if !left[i] {
					more = append(more, strconv.Itoa(i))
				}
			}
			if len(more) > len(without) && fails(more) {
				for i := at; i < min(at+size, len(plan)); i++ {
					left[i] = true
				}
				without = more
			}
		}
	}
	fmt.Printf("it fails with these faults alone (-without %s):\n", strings.Join(without, ","))
	for i, line := range plan {
		if !left[i] {
			fmt.Println(line[0])
		}
	}
	return nil
}

// mutate puts in the defects one by one, and reports those that are not found.
func mutate(dir string) error {
	missed := 0
	for _, m := range defects {
		if !strings.Contains(m.name, only) {
			continue
		}
		found, cpu, err := m.found(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if !found {
			missed++
		}
		fmt.Printf("%-60s found %-5v after %v of CPU\n", m.name, found, cpu.Round(time.Second/10))
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d defects are not found", missed, len(defects))
	}
	return nil
}

// A defect is a change of the product that the simulation must find.
type defect struct {
	name, file string
	was, is    string // text of the file; was stands there once
}

// found plays worlds of a product with the defect, until one fails or the time is over. It returns how long they computed.
func (d *defect) found(dir string) (found bool, cpu time.Duration, err error) {
	file, err := filepath.Abs(d.file)
	if err != nil {
		return false, 0, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return false, 0, err
	}
	if n := strings.Count(string(b), d.was); n != 1 {
		return false, 0, fmt.Errorf("%s has the text %q %d times", d.file, d.was, n)
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return false, 0, err
	}
	err = errors.Join(os.WriteFile(changed, []byte(strings.Replace(string(b), d.was, d.is, 1)), 0o600),
		os.WriteFile(overlay, list, 0o600))
	if err != nil {
		return false, 0, err
	}
	program := filepath.Join(dir, "mutant.test")
	if err := build(program, nil, "-overlay", overlay); err != nil {
		return false, 0, err
	}
	cmd := exec.Command(program, arguments("-for", lasts.String(), "-first", "1", "-test.timeout", (2*lasts).String())...)
	out, err := cmd.CombinedOutput()
	fmt.Printf("%s\n", regexp.MustCompile(`seed \d+, .{0,150}`).Find(out))
	// A hang is a finding too. What such a time must reach is none.
	return err != nil && !bytes.Contains(out, []byte("never reached: ")), cmd.ProcessState.UserTime(), nil
}
