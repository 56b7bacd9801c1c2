//go:build linux

package scenario

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

// rides are programs of others at work during a train ride, through a forward, a session without a terminal, or files. It
// needs root, the tools, and half an hour.
var rides = []Scenario{
	ride("ride: curl of 1 GB through -L", "curl", work.Tool{
		Server: web,
		Client: forwarded(toServer) + `
			curl -fsS 'http://127.0.0.1:8080/random?n=1000000000' | sha256sum > "$DIR/got"
			"$BENCH" random 1000000000 | sha256sum | cmp - "$DIR/got"`,
	}, program.SSH{}, program.Tssh),
	ride("ride: curl of 1 GB through -D", "curl", work.Tool{
		Server: web,
		Client: forwarded("-D 8080") + `
			curl -fsS --socks5-hostname 127.0.0.1:8080 'http://localhost:8000/random?n=1000000000' | sha256sum > "$DIR/got"
			"$BENCH" random 1000000000 | sha256sum | cmp - "$DIR/got"`,
	}, program.SSH{}, program.Tssh),
	ride("ride: vite's updates through -L", "vite", work.Tool{
		Server: `mkdir "$DIR/app" && cd "$DIR/app"
			echo '<script type="module" src="/main.js"></script>' > index.html; echo 'import.meta.hot.accept()' > main.js
			exec vite --host 127.0.0.1 --port 8000 --strictPort`,
		Client: forwarded(toServer) + `
			curl -fsS -o /dev/null http://127.0.0.1:8080/main.js
			"$BENCH" hmr ws://127.0.0.1:8080/ "$DIR/app/main.js" 50s`,
	}, program.SSH{}, program.Tssh),
	ride("ride: psql through -D", "psql proxychains4 postgres", work.Tool{
		Server: `cd /; chmod 711 "$DIR"; install -d -o postgres "$DIR/data"
			exec setpriv --reuid postgres --regid postgres --clear-groups sh -c '
				initdb -D "$DIR/data" -A trust > /dev/null
				exec postgres -D "$DIR/data" -h 127.0.0.1 -p 8000 -k ""'`,
		Client: forwarded("-D 8080") + `
			printf '%s\n' strict_chain quiet_mode '[ProxyList]' 'socks5 127.0.0.1 8080' > "$DIR/proxychains.conf"
			sql() {
				proxychains4 -f "$DIR/proxychains.conf" psql -qAtX -v ON_ERROR_STOP=1 -h 127.0.0.1 -p 8000 -U postgres "$@"
			}
			sql -c 'SELECT count(*) FROM generate_series(1, 3000000), pg_sleep(50)' > "$DIR/long" & long=$!
			{ echo 'BEGIN; CREATE TABLE rides (second int);'
				for n in $(seq 50); do echo "INSERT INTO rides VALUES ($n);"; sleep 1; done
				echo 'COMMIT; SELECT sum(second) FROM rides'; } | sql > "$DIR/sum"
			wait $long
			test "$(cat "$DIR/long" "$DIR/sum")" = "$(printf '3000000\n1275')"`,
	}, program.SSH{}, program.Tssh),
	ride("ride: VS Code's remote server over host.qt", "vscode-server", work.Tool{
		Server: sshd(22) + ` &
			exec vscode-server --host 127.0.0.1 --port 8000 --without-connection-token --accept-server-license-terms \
				--server-data-dir "$DIR/data"`,
		Client: `
			[ -x "$DIR/proxy" ] && forward() {
				exec ssh -F /dev/null -o ProxyCommand="$DIR/proxy" -o HostKeyAlias=inner -o UserKnownHostsFile="$DIR/known" \
					-i "$DIR/key" -N "$@" host.qt
			}
			` + forwarded(toServer) + `"$BENCH" vscode ws://127.0.0.1:8080/ 50s`,
	}, program.SSH{}, program.Tssh),
	ride("ride: rsync of 20 000 files", "rsync", work.Tool{
		Client: `
			mkdir "$DIR/from" && cd "$DIR/from"
			"$BENCH" random 81920000 | split -a 4 -b 4096
			rsync -a --bwlimit=1700 -e remote ./ "$HOST:$DIR/to/"
			diff -r "$DIR/from" "$DIR/to"`,
	}, program.SSH{}, program.Tssh),
	ride("ride: copy of 2 GB", "", work.Tool{
		Limit: 5 * time.Minute,
		Client: `
			"$BENCH" random 2000000000 > "$DIR/file"
			copy "$DIR/file" "$HOST:$DIR/there"
			cmp "$DIR/file" "$DIR/there"`,
	}, program.SSH{}),
	ride("ride: build on sshfs", "sshfs make cc", work.Tool{
		Client: `
			mkdir "$DIR/source" "$DIR/mnt" && cd "$DIR/source"
			for n in $(seq 40); do echo "int f$n(void) { return $n; }" > f$n.c; done
			{ seq -f 'int f%g(void);' 40; echo 'int main(void) { return (0'; seq -f '+f%g()' 40; echo ') != 820; }'; } > main.c
			printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n\tcc -o all $^\n' > Makefile
			sshfs -o ssh_command=files "$HOST:$DIR/source" "$DIR/mnt"
			trap 'fusermount -u "$DIR/mnt"' EXIT
			make -s -C "$DIR/mnt"
			"$DIR/source/all"`,
	}, program.SSH{}),
	ride("ride: git push by agent", "git", work.Tool{
		Server: sshd(8000),
		Client: `
			eval "$(ssh-agent -s)" > /dev/null; trap 'kill $SSH_AGENT_PID' EXIT
			ssh-add -q "$DIR/key"
			git init -q --bare "$DIR/bare" && git init -q "$DIR/work"
			export REMOTE_FLAGS=-A
			remote "$HOST" "cd $DIR/work && mv ../key ../key.gone
				git config user.name rider && git config user.email rider@example.com
				git config core.sshCommand 'ssh -F /dev/null -p 8000 -o HostKeyAlias=inner -o UserKnownHostsFile=$DIR/known'
				for n in \$(seq 50); do
					git commit -q --allow-empty -m \$n && git push -q \$(id -un)@127.0.0.1:$DIR/bare HEAD:main || exit 1
					sleep 1
				done"
			test "$(git -C "$DIR/bare" rev-list --count main)" = 50`,
	}, program.SSH{}, program.Tssh),
}

// forwards are connections through forwards, over a fast path that loses packets, and copies of many files. ssh's
// congestion control is cubic, as usual.
var forwards = []Scenario{
	forward("forward: 50 MB through -L, 100 Mbit/s, 50 ms", 0, Bound{Metric: "took", Rival: "ssh", Times: 1.1}),
	forward("forward: 50 MB through -L, 100 Mbit/s, 50 ms, 0.1 % loss", 0.001, Bound{Metric: "took", Rival: "ssh", Times: 1. / 3}),
	{
		Name: "forward: 50 MB through a pipe, 100 Mbit/s, 50 ms", Namespaces: true, Alone: true,
		Link: netem.Config{Delay: 25 * time.Millisecond, Rate: fastRate, Queue: fastQueue},
		Work: work.Tool{
			Client: `test "$(remote "$HOST" "$BENCH random 50000000" | wc -c)" = 50000000`,
			Limit:  time.Minute,
		},
		Bounds: []Bound{{Metric: "whole", Plus: 1, AtLeast: true}},
	},
	{
		Name: "forward: 1000 idle and 20 000 short connections through -L", Link: netem.Config{Delay: 25 * time.Millisecond}, Alone: true,
		Work: work.Forward{Times: 200, Idle: 1000, Short: 10_000},
		Bounds: []Bound{
			{Metric: "opened", Quantile: 0.5, RTTs: 1, Plus: 5}, {Metric: "own memory", Quantile: 1, Plus: 100},
			{Metric: "descriptors", Quantile: 1, Plus: 2}, {Metric: "own growth", Quantile: 1, Plus: 5},
		},
	},
	{
		Name: "forward: connections through -L on loopback", Work: work.Forward{Times: 200}, Alone: true,
		Bounds: []Bound{{Metric: "opened", Quantile: 0.5, Plus: 5}},
	},
	small(500, "cp", `copy "$DIR/from" "$HOST:$DIR/to"`, program.SSH{}),
	small(20_000, "cp", `copy "$DIR/from" "$HOST:$DIR/to"`),
	small(20_000, "rsync", `rsync -a -e remote ./ "$HOST:$DIR/to/"`),
	{ // as much as two sessions: see "idle, pings each 25 s"
		Name: "forward: an unused side pipe beside a session", Link: far,
		Work:   work.SidePipe{Idle: work.Idle{After: 70 * time.Second, Rest: 100 * time.Second}},
		Bounds: []Bound{{Metric: "wire", Quantile: 1, Plus: 2 * 3.5}, {Metric: "of a session", Quantile: 1, Plus: 1}},
	},
}

// small copies files of 4 KiB to a server 100 ms away, by a command.
func small(number int, by, command string, rivals ...program.Program) Scenario {
	return Scenario{
		Name: fmt.Sprintf("copy: %d files of 4 KiB by %s, 100 ms", number, by), Namespaces: true, Alone: true, Rivals: rivals,
		Needs: program.Needs("rsync"), Link: netem.Config{Delay: 50 * time.Millisecond, Rate: fastRate, Queue: fastQueue},
		Work: work.Tool{
			Client: fmt.Sprintf(`
				mkdir "$DIR/from" && cd "$DIR/from"
				"$BENCH" random %d | split -a 4 -b 4096
				%s
				diff -r "$DIR/from" "$DIR/to"`, number*4096, command),
			Limit: 10 * time.Minute,
		},
		Bounds: []Bound{{Metric: "whole", Plus: 1, AtLeast: true}},
	}
}

func forward(name string, loss float64, bound Bound) Scenario {
	return Scenario{
		Name: name, Namespaces: true, Alone: true, Needs: program.NeedsSSH, Rivals: []program.Program{program.SSH{}},
		Link: netem.Config{Delay: 25 * time.Millisecond, Loss: loss, Rate: fastRate, Queue: fastQueue},
		Work: work.Tool{
			Server: web,
			Client: forwarded(toServer) + `
				test "$(curl -fsS 'http://127.0.0.1:8080/random?n=50000000' | wc -c)" = 50000000`,
			Limit: 2 * time.Minute,
		},
		Bounds: []Bound{{Metric: "whole", Plus: 1, AtLeast: true}, bound},
	}
}

const (
	web      = `exec "$BENCH" web 127.0.0.1:8000`
	toServer = "-L 8080:127.0.0.1:8000"
)

// sshd is a server of ssh on a port, with keys of its own in $DIR: its clients know it as inner, and log in with key.
func sshd(port int) string {
	return fmt.Sprintf(`cd "$DIR" && ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f key
		echo "inner $(cut -d' ' -f1,2 host.pub)" > known
		/usr/sbin/sshd -D -f /dev/null -h "$DIR/host" -p %d -o ListenAddress=127.0.0.1 -o PidFile=none \
			-o AuthorizedKeysFile="$DIR/key.pub" -o StrictModes=no -o PermitRootLogin=yes`, port)
}

// forwarded starts a forward, and waits until it listens on port 8080.
func forwarded(flags string) string {
	return `forward ` + flags + ` & f=$!; trap 'kill $f 2>/dev/null' EXIT
		` + work.Listens(8080)
}

// ride needs some commands beside those of sh.
func ride(name, commands string, w work.Tool, rivals ...program.Program) Scenario {
	w.Limit = cmp.Or(w.Limit, 150*time.Second)
	return Scenario{
		Name: name, Namespaces: true, Interfaces: 2, Places: 10, Rivals: rivals,
		Needs:  program.Needs(strings.Fields(commands)...),
		Link:   netem.Config{Delay: 20 * time.Millisecond, Rate: fastRate, Queue: fastQueue},
		Events: event.TrainRide(), Work: w,
		Bounds: []Bound{{Metric: "whole", Plus: 1, AtLeast: true}},
	}
}
