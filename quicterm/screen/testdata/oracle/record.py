#!/usr/bin/env python3
"""Records what programs write to a terminal of 80x24, for the tests of package screen.

    unshare -muip --mount-proc -f python3 record.py FOLDER [NAME...]

It runs as root, in namespaces of its own, so that recordings name no machine, no user and no other
process: the host is "vm", the home is /home/person. The programs must be installed, and the two of
this folder be in $RECORD_PROGRAMS: ink.mjs beside its node_modules, and table, built of table.go.txt.
"""
import fcntl, os, pty, re, select, signal, struct, subprocess, sys, termios, time

HOME = '/home/person'
ENV = {
    'HOME': HOME, 'USER': 'person', 'LOGNAME': 'person', 'SHELL': '/bin/sh', 'LANG': 'C.UTF-8', 'LC_ALL': 'C.UTF-8',
    'TERM': 'xterm-256color', 'COLORTERM': 'truecolor', 'PS1': '$ ', 'PATH': '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/usr/games',
    'GIT_AUTHOR_NAME': 'P. Erson', 'GIT_AUTHOR_EMAIL': 'p@example.org', 'GIT_COMMITTER_NAME': 'P. Erson',
    'GIT_COMMITTER_EMAIL': 'p@example.org', 'GIT_AUTHOR_DATE': '2026-01-02T03:04:05Z', 'GIT_COMMITTER_DATE': '2026-01-02T03:04:05Z',
}
HERE = os.environ.get('RECORD_PROGRAMS', '.')
ESC, UP, DOWN, RIGHT, LEFT = '\x1b', '\x1b[A', '\x1b[B', '\x1b[C', '\x1b[D'

FILES = {
    'cjk.txt': '漢字とかなのまじった文です。\n한국어 문장도 있습니다.\n中文字符測試，標點符號。\n' + 'ab漢' * 30 + '\n'
               'emoji: 😀 🎉 ✅ ❤️ 👩‍💻 🇩🇪 👍🏽 1️⃣\ncombining: e\u0301 n\u0303 a\u0308\u0323 ก็ นี้ हिन्दी\n'
               'RTL: שלום עולם مرحبا\nwidths: ｆｕｌｌ ﾊﾝｶｸ ① ± … — “q” · ░▒▓█ ┌─┐\n',
    'main.go': '''package main

import "fmt"

// fib returns the n-th number of Fibonacci's.
func fib(n int) int {
\tif n < 2 {
\t\treturn n
\t}
\treturn fib(n-1) + fib(n-2)
}

func main() {
\tfor i := range 40 {
\t\tfmt.Printf("%2d: %d\\n", i, fib(i))
\t}
}
''',
    'words': '\n'.join(f'{a}{b}' for a in 'alpha beta gamma delta omega'.split() for b in 'one two three four five six seven'.split()) + '\n',
    'vimrc': 'set nocompatible number hlsearch incsearch ruler showcmd mouse=a laststatus=2 backspace=2 nomodeline noswapfile viminfo=\n'
             'filetype plugin indent on\nsyntax on\n',
    'zshrc': "PROMPT='%F{green}%1~%f %# '\nRPROMPT='%F{yellow}[%?]%f %B%h%b'\nsetopt promptsubst\nautoload -U compinit; compinit -D -u\n",
    'progress.sh': '''printf '\\033[1;23r\\033[24;1H\\033[42m progress \\033[m\\033[23;1H'
for i in $(seq 60); do printf 'Unpacking package-%s (1.%s) ...\\n' $i $i
printf '\\0337\\033[24;12H\\033[46m%3d%%\\033[m\\0338' $((i * 100 / 60)); done
printf '\\033[r\\033[24;1H\\033[K'
''',
}

SETUP = '''
mkdir -p repo && cd repo && git init -q -b main . && for i in 1 2 3 4 5 6 7 8; do
  printf 'line %s\\n' $(seq $i 30) > file$i.txt; git add .; git commit -qm "file$i: write down the lines $i to 30"; done
sed -i s/12/twelve/ file3.txt; echo new > untracked.txt; cd ..
mkdir -p .config/fish tree/a/b tree/c; head -c 3000 /dev/zero > tree/a/b/zeros; head -c 9000 /dev/zero > tree/c/more
'''

ALONE = 'unshare -p --fork --mount-proc sh -c "sleep 60 & sleep 61 & exec '

# name: (command, steps); a step is keys, or seconds to wait after the output has ended.
PROGRAMS = {
    'ink': (f'node {HERE}/ink.mjs', [3, DOWN, DOWN, 'hello', 0.8, DOWN, 0.5, 'q', 0.5]),
    'ink_open': (f'node {HERE}/ink.mjs', [2.5, DOWN, DOWN, 'hi', 0.4]),
    'table': (f'{HERE}/table', [0.8, DOWN, DOWN, 'G', 'g', 0.5, '/', 'kube', 0.5]),
    'tmux_splits': ('tmux -f /dev/null -L rec new -s one', [
        0.7, 'ls -la\r', '\x02%', 0.4, 'seq 100\r', '\x02"', 0.4, 'cat cjk.txt\r', 0.4, '\x02\x1b[1;5A', 0.2, '\x02o', '\x02z', 0.4,
        '\x02z', '\x02[', UP * 5, '\x1b[5~', 0.5, 'q', '\x02c', 0.4, 'echo second\r', '\x02p', 0.5]),
    'screen_in': ('screen -c /dev/null -s /bin/sh', [0.7, ' ', 0.3, 'ls -la\r', 0.3, '\x01S', '\x01\t', '\x01c', 0.3, 'seq 50\r', 0.3, '\x01\t', 0.2, 'cat cjk.txt\r', 0.5]),
    'dvtm': ('dvtm', [0.6, 'seq 60\r', '\x07c', 0.4, 'ls -la\r', '\x07c', 0.4, 'cat cjk.txt\r', 0.4, '\x07 ', 0.4, '\x07j', 0.3]),
    'fish': ('fish --no-config -i', [1, 'echo hello wor', LEFT * 3, 'X', '\r', 0.3, 'ls ma\t', 0.4, '\r', 'ech', 0.3, '\t\t', 0.6, '\x03', 'for i in 1 2\recho $i\rend\r', 0.5]),
    'zsh_rprompt': ('zsh -o nopromptsp -i', [0.7, 'echo one two\r', 0.3, 'false\r', 0.3, 'ls ', '\t', 0.4, '\t', 0.3, '\x03', 'cat words | head -n 30\r', 0.3,
                    'a long line ' * 8, 0.3, '\x01', 'X', 0.3]),
    'fzf': ('fzf --preview "cat main.go" < words', [0.8, 'gam', 0.4, UP, UP, 0.3, '\t', UP, 0.4]),
    'fzf_quit': ('fzf --height 10 --multi < words', [0.8, 'o', UP, '\t', UP, '\t', '\r', 0.4]),
    'tig': ('cd repo && tig', [2.5, 'jjj\r', 0.6, 'jj', 'q', 0.3, 'S', 0.5, 'q', '/lines 4', '\r', 0.5]),
    'htop': (ALONE + 'htop -d 10"', [1.3, DOWN, DOWN, 't', 0.5, '\x1bOQ', 0.7, ESC, 1.2]),
    'vim_splits': ('vim -u vimrc main.go', [
        0.7, ':vsplit cjk.txt\r', 0.3, ':split words\r', '\x17l', '/fib\r', 'nn', 0.3, 'V3jd', 'u', 0.3, 'ggOhello \x1b', '\x17hG', '\x05\x05', 0.3, ':set list\r', 0.5]),
    'vim_wide': ('vim -u vimrc cjk.txt', [0.7, '$', 'jj', 'x', 'x', 'iあ\x1b', 'G', 'dd', 'p', '4G', '3\x0c', 'R漢\x1b', 0.5]),
    'emacs': ('emacs -nw -Q --eval "(setq inhibit-startup-screen t)" main.go', [
        2.5, '\x18' + '2', 0.3, '\x18o', '\x18\x06', '\x15', 'cjk.txt\r', 0.5, '\x18' + '3', 0.3, '\x13fib', 0.4, '\x07', '\x1b<', '\x0b\x0b', 0.3, '\x19', '\x0e' * 10, 0.5]),
    'cjk_cat': ('cat cjk.txt cjk.txt; for i in $(seq 20); do head -n $((i % 8 + 1)) cjk.txt | tail -n 1; done', [0.5]),
    'cjk_less': ('less cjk.txt', [0.5, '/漢', '\r', 0.3, 'j', 'j', 0.3]),
    'progress_region': ('sh progress.sh', [0.5]),
    'man': ('man -P less ls', [1.2, '  ', 0.3, '/sort\r', 0.4, 'n', 0.4]),
    'ncdu': ('ncdu -x tree', [0.8, DOWN, '\r', 0.4, 'i', 0.4]),
    'top': (ALONE + 'top -d 1"', [1.5, 'c', 'x', 'z', 1.2]),
    'watch': ('watch -n 1 -d -t "seq \\$(date +%S | sed s/^0//) 99 | head -n 20"', [1, 2.2]),
    'nano_edit': ('nano -x main.go', [0.7, 'hello', DOWN * 4, '\x0b', '\x15', '\x17fib\r', 0.4]),
    'bat': ('batcat --paging=never -f main.go', [0.7]),
    'git_log': ('git -C repo log --graph --stat --color=always', [0.6, '  ', 0.4, '\x1b[6~', 'q', 0.3]),
}

# Tests of vttest: the keys of its menus, then how many screens of a test follow by Return.
VTTEST = {
    'movements': (['1'], 6), 'features': (['2'], 14), 'charsets': (['3', '8'], 1), 'shifts': (['3', '9'], 1), 'double': (['4'], 10),
    'vt52': (['7'], 3), 'insdel': (['8'], 13), 'bug_a': (['9', '1'], 5), 'bug_b': (['9', '2'], 2), 'bug_wrap': (['9', '7'], 1),
    'bug_erase': (['9', '8'], 1), 'bug_regions': (['9', '9'], 1), 'ech': (['11', '1', '2', '3'], 1), 'protect': (['11', '1', '2', '4'], 8),
    'hpa': (['11', '5', '1'], 1), 'cbt': (['11', '5', '2'], 1), 'cha': (['11', '5', '3'], 1), 'cht': (['11', '5', '4'], 1),
    'hpr': (['11', '5', '5'], 1), 'vpa': (['11', '5', '6'], 1), 'cnl': (['11', '5', '7'], 1), 'cpl': (['11', '5', '8'], 1),
    'vpr': (['11', '5', '9'], 1), 'colours': (['11', '6', '2'], 1), 'sgr0': (['11', '6', '3'], 1), 'bce_el': (['11', '6', '4'], 1),
    'bce_ech': (['11', '6', '5'], 2), 'bce_vt102': (['11', '6', '6', '1'], 3), 'bce_other': (['11', '6', '7', '9'], 2),
    'alt47': (['11', '8', '7', '3'], 3), 'alt1047': (['11', '8', '7', '4'], 3), 'alt1049': (['11', '8', '7', '5'], 3),
    'decfi': (['11', '3', '2', '8'], 1), 'vt420_moves': (['11', '3', '2', '9'], 2),
}

ANSWERS = [(rb'\x1b\[0?c', b'\x1b[?62;22c'), (rb'\x1b\[>0?c', b'\x1b[>1;4000;0c'), (rb'\x1b\[6n', b'\x1b[1;1R'), (rb'\x1b\[5n', b'\x1b[0n')]


def record(command, steps):
    """Runs a command in a terminal, and returns what it wrote."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(HOME)
        os.execvpe('/bin/sh', ['sh', '-c', 'exec 2>&1; ' + command], ENV)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    output = bytearray()

    def read(wait, quiet):
        end = time.time() + wait
        while True:
            ready, _, _ = select.select([fd], [], [], quiet if quiet else max(end - time.time(), 0))
            if not ready:
                return True
            try:
                data = os.read(fd, 65536)
            except OSError:
                return False
            if not data:
                return False
            output.extend(data)
            for query, answer in ANSWERS:
                for _ in re.findall(query, data):
                    os.write(fd, answer)
            if time.time() > end:
                return True

    alive = True
    for step in steps:
        if isinstance(step, str):
            if alive:
                os.write(fd, step.encode())
                alive = read(0.5, 0.06)
        elif alive:
            alive = read(step, 0)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.close(fd)
    os.waitpid(pid, 0)
    return bytes(output)


def vttest(keys, screens):
    """Runs a test of vttest, and returns what it wrote after the menus."""
    menus = [0.5]
    for key in keys[:-1]:
        menus += [key, '\r', 0.3]
    start = record('vttest', menus)
    both = record('vttest', menus + [keys[-1], '\r', 0.6] + ['\r', 0.4] * (screens - 1))
    return both[len(start):]


def main():
    folder, names = sys.argv[1], sys.argv[2:] or [*PROGRAMS, *VTTEST]
    subprocess.run(['hostname', 'vm'], check=True)
    os.makedirs(HOME, exist_ok=True)
    subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', HOME], check=True)
    for name, text in FILES.items():
        with open(os.path.join(HOME, name), 'w') as f:
            f.write(text)
    os.rename(os.path.join(HOME, 'zshrc'), os.path.join(HOME, '.zshrc'))
    subprocess.run(['sh', '-c', SETUP], cwd=HOME, env=ENV, check=True)
    for name in names:
        if name in PROGRAMS:
            path, data = f'programs/{name}.raw', record(*PROGRAMS[name])
        else:
            path, data = f'vttest/{name}.raw', vttest(*VTTEST[name])
        with open(os.path.join(folder, path), 'wb') as f:
            f.write(data)
        print(f'{name}: {len(data)} bytes')


main()
