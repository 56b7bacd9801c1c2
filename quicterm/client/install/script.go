package install

import "strings"

// Command is what the login shell has to run. It means the same to sh, bash, zsh, fish and
// csh: between single quotes, it has no backslash, exclamation mark or newline.
const Command = `sh -c 'read -r script; eval "$script"'`

// mark begins the lines of the scripts, and tells them from all else that a login prints.
const mark = "quicterm-install "

// script is the one line that Command reads: its own lines end in what ends a command of sh. It replaces the file by a
// rename: processes that run the old one keep it. A copy that does not run is removed before it takes the old one's place.
// sum prints nothing on a system without a program that computes SHA-256.
var script = strings.Join(strings.Fields(echo+`
d=$HOME/.local/bin; f=$d/qtd; t=$d/.qtd.$$;
say() { printf '`+mark+`%s\n' "$(printf '%s ' "$@" | tr '\n' ' ')"; };
fail() { say failed "$@"; exit 1; };
sum() { { sha256sum <"$1" || shasum -a 256 <"$1"; } 2>/dev/null | { read -r s x; echo "$s"; }; };
[ -d "${HOME:-/none}" ] || fail "the account has no home directory there (HOME is \"$HOME\")";
say file "$f";
say platform "$(uname -sm)";
say path "$(command -v qtd)";
[ -f "$f" ] && say has "$(sum "$f")" "$("$f" version 2>&1)";
say ready;
read -r size want version || exit 0;
e=$(mkdir -p "$d" 2>&1) || fail "no directory for qtd: $e";
[ -d "$f" ] && fail "no directory for qtd: $f is a directory";
trap 'rm -f "$t"' EXIT;
trap 'exit 1' HUP INT TERM PIPE;
e=$({ cat >"$t"; } 2>&1) || fail "the copy cannot be written: $e";
n=$(wc -c <"$t"); n=$((n));
[ "$n" = "$size" ] || fail "the copy was cut off after $n bytes";
s=$(sum "$t");
[ "${s:-$want}" = "$want" ] || fail "the copy has another checksum than the original";
e=$(chmod 755 "$t" 2>&1) || fail "the copy cannot be written: $e";
v=$("$t" version 2>&1) || {
	case $v in *"Permission denied"*) v="$v: the file system of the home does not let programs run (noexec)";; esac;
	fail "the copied qtd does not run there: $v"; };
[ "$v" = "$version" ] || fail "the copy says that it is another version, \"$v\"";
e=$(mv -f "$t" "$f" 2>&1) || fail "the copy cannot be written: $e";
say done "$s";
`), " ")

// echo is the start of the script, by which a login is known that returns its input.
const echo = "LC_ALL=C; export LC_ALL;"
