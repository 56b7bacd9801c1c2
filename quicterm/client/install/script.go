package install

import "strings"

// Command is what the login shell has to run. It means the same to sh, bash, zsh, fish and
// csh: between single quotes, it has no backslash, exclamation mark or newline.
const Command = `sh -c 'read -r script; eval "$script"'`

// mark begins the lines of the scripts, and tells them from all else that a login prints.
const mark = "quicterm-install "

// script returns the one line that Command reads. Lines of a script end in what ends a
// command of sh.
func script(lines string) string {
	return strings.Join(strings.Fields(prelude+lines), " ")
}

// echo is the start of each script, by which a login is known that returns its input.
const echo = "LC_ALL=C; export LC_ALL;"

// prelude is common to the scripts. sum prints nothing on a system without a program that
// computes SHA-256.
const prelude = echo + `
d=$HOME/.local/bin; f=$d/qtd; t=$d/.qtd.$$;
say() { printf '` + mark + `%s\n' "$(printf '%s ' "$@" | tr '\n' ' ')"; };
fail() { say failed "$@"; exit 1; };
sum() { { sha256sum <"$1" || shasum -a 256 <"$1"; } 2>/dev/null | { read -r s x; echo "$s"; }; };
[ -d "${HOME:-/none}" ] || fail home "$HOME";
say file "$f";
`

// installScript replaces the file by a rename: processes that run the old one keep it. A copy
// that does not run is removed before it takes the old one's place.
const installScript = `
say platform "$(uname -sm)";
say path "$(command -v qtd)";
[ -f "$f" ] && say has "$(sum "$f")" "$("$f" version 2>&1)";
say ready;
read -r size want version || exit 0;
e=$(mkdir -p "$d" 2>&1) || fail directory "$e";
[ -d "$f" ] && fail directory "$f is a directory";
trap 'rm -f "$t"' EXIT;
trap 'exit 1' HUP INT TERM PIPE;
e=$({ cat >"$t"; } 2>&1) || fail write "$e";
n=$(wc -c <"$t"); n=$((n));
[ "$n" = "$size" ] || fail size "$n";
s=$(sum "$t");
[ "${s:-$want}" = "$want" ] || fail checksum;
e=$(chmod 755 "$t" 2>&1) || fail write "$e";
v=$("$t" version 2>&1) || fail run "$v";
[ "$v" = "$version" ] || fail version "$v";
e=$(mv -f "$t" "$f" 2>&1) || fail write "$e";
say done "$s";
`

// removeScript removes copies that were cut off as well.
const removeScript = `
[ -e "$f" ] || [ -L "$f" ] || { say none; exit 0; };
e=$(rm -f "$f" "$d"/.qtd.[0-9]* 2>&1) || fail remove "$e";
rmdir "$d" "$HOME/.local" 2>/dev/null;
k=${XDG_STATE_HOME:-$HOME/.local/state}/quicterm;
[ -d "$k" ] && say kept "$k";
say done;
`
