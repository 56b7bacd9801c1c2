package memory

import (
	"os"
	"testing"
	"testing/fstest"
)

func TestRead(t *testing.T) {
	const mib = 1 << 20
	machine := map[string]string{"proc/meminfo": "MemTotal:       1048576 kB\nMemFree: 1 kB\nMemAvailable:    524288 kB\n"}
	tests := []struct {
		why   string
		files map[string]string
		want  State
	}{
		{"no groups", nil, State{1024 * mib, 512 * mib}},
		{"no limit", map[string]string{
			"proc/self/cgroup":           "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "max\n",
		}, State{1024 * mib, 512 * mib}},
		{"a limit above", map[string]string{
			"proc/self/cgroup":               "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max":     "268435456\n",
			"sys/fs/cgroup/a/memory.current": "104857600\n",
			"sys/fs/cgroup/a/memory.stat":    "anon 1\nfile 52428801\ninactive_file 52428800\n",
		}, State{256 * mib, 206 * mib}},
		{"used up", map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "268435456\n",
			"sys/fs/cgroup/memory.current": "368435456\n",
		}, State{256 * mib, 0}},
		{"a process that entered a container from outside", map[string]string{
			"proc/self/cgroup":             "4:memory:/../other\n0::/..\n",
			"sys/fs/cgroup/memory.max":     "268435456\n",
			"sys/fs/cgroup/memory.current": "52428800\n",
		}, State{256 * mib, 206 * mib}},
		{"version 1 in a container", map[string]string{
			"proc/self/cgroup":                           "5:cpu,cpuacct:/\n4:memory:/docker/1\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "52428800\n",
		}, State{256 * mib, 206 * mib}},
		{"version 1 without a limit", map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, State{1024 * mib, 512 * mib}},
		{"nonsense", map[string]string{"proc/self/cgroup": "\n0::\nx:y\n"}, State{1024 * mib, 512 * mib}},
	}
	for _, test := range tests {
		root := make(fstest.MapFS)
		for _, files := range []map[string]string{machine, test.files} {
			for name, content := range files {
				root[name] = &fstest.MapFile{Data: []byte(content)}
			}
		}
		if got, err := read(root); err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", test.why, got, err, test.want)
		}
	}
	if _, err := read(make(fstest.MapFS)); err == nil {
		t.Error("without a file: no error")
	}
	if s, err := Read(); err != nil || s.Total == 0 || s.Available > s.Total {
		t.Errorf("this machine: %+v, %v", s, err)
	}
}

// A process's memory counts for its account, without the first bytes.
func TestByAccount(t *testing.T) {
	taken := make([]byte, 32<<20)
	for i := 0; i < len(taken); i += os.Getpagesize() {
		taken[i] = 1
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	name := string(comm[:len(comm)-1])
	sums, err := ByAccount(name, 16<<20)
	if got := sums[uint32(os.Getuid())]; err != nil || got < 16<<20 {
		t.Errorf("%d bytes of %q, %v; want at least 16 MiB", got, name, err)
	}
	if sums, err = ByAccount(name, 1<<50); err != nil || sums[uint32(os.Getuid())] != 0 {
		t.Errorf("%v, %v; want none above the first PiB", sums, err)
	}
	if sums, err = ByAccount("no such name", 0); err != nil || len(sums) > 0 {
		t.Errorf("%v, %v of no process", sums, err)
	}
	taken[0] = 0
}
