#!/bin/bash
# What the completions for bash and zsh offer is what the programs take: commands, options and log levels against smcrctl
# and smcrd themselves, names against a fake smcrd. The functions of the shells' own completion are stand-ins that
# print what they are given.
set -u
src=$(cd "${top_srcdir:-.}" && pwd) || exit 1
cd "${top_builddir:-build}" || exit 1
PATH=$PWD:$PATH
dir=$(mktemp -d /tmp/check_completion.XXXXXX) || exit 1
sock=$dir/control
daemon=
export LC_ALL=C
n=0
cleanup() {
	[ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT

# offered SHELL PROGRAM WORD...: what is offered behind PROGRAM for the last of the words, in one line, sorted.
offered() {
	local shell=$1
	shift
	"$shell" "$dir/offers.$shell" "$@" | sort -u | paste -sd ' '
}

cat > "$dir/offers.bash" <<-EOB
	COMP_WORDS=("\$@") COMP_CWORD=\$((\$# - 1))
	_init_completion() {
		words=("\${COMP_WORDS[@]}") cword=\$COMP_CWORD cur=\${words[cword]} prev=\${words[cword-1]} split=false
	}
	_filedir() { echo FILE; }
	_known_hosts_real() { echo HOST; }
	compopt() { :; }
	COMPREPLY=()
	. <(sed 's,/run/smcrd-,$dir/run/smcrd-,; s,/etc/smcrd/,$dir/etc/,' "$src/ctl/completion/\$1")
	"_\$1"
	printf '%s\n' "\${COMPREPLY[@]}"
EOB
cat > "$dir/offers.zsh" <<-EOZ
	setopt no_rcs
	words=("\$@") CURRENT=\$#
	_wanted() { shift 3; "\$@"; }
	_describe() { local a=\$argv[-1]; print -rl -- \${\${(P)a}%%:*}; }
	_message() { :; }
	_files() { print FILE; }
	_hosts() { print HOST; }
	compset() { :; }
	compadd() { local a=\$argv[-1]; print -rl -- \${(P)a}; }
	# '-f+[what]:for people:action', '(not with)--x[what]': options, or the words of the action of the one before.
	_arguments() {
		local spec
		for spec; do
			spec=\${spec#\(*\)}
			case \$spec in
				-s) ;;
				*:_smcrd_*) [[ \$words[CURRENT-1] == \${\${spec%%\[*}%[+=]} ]] && { \${spec##*:}; return; } ;|
				*:\(*\)) [[ \$words[CURRENT-1] == \${spec%%+*} ]] && { print -l -- \${=\${\${spec##*:\(}%\)}}; return; } ;|
				-*) [[ \$words[CURRENT] == -* ]] && print -r -- \${\${\${\${spec%%\[*}%+}%=-}%=} ;;
			esac
		done
	}
	. <(sed 's,/run/smcrd-,$dir/run/smcrd-,; s,/etc/smcrd/,$dir/etc/,' "$src/ctl/completion/_\$1")
EOZ

# equal NAME WANTED GOT
equal() {
	n=$((n + 1))
	if [ -n "$2" ] && [ "$2" = "$3" ]; then
		echo "ok $n - $1"
	else
		printf '# wanted: %s\n# offered: %s\nnot ok %d - %s\n' "$2" "$3" "$n" "$1"
	fi
}
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
words_of() { tr -s ' ' '\n' | grep . | sort -u | paste -sd ' '; }

# usages: the commands as the help shows them; what an example of each is on the command line.
usages() { smcrctl --help | sed -n '/^Commands:/,/^$/s/^  \([a-z].*[^ ]\) \{2,\}[^ ].*/\1/p'; }
examples() { usages | sed 's/ \[.*\]//; s/HOST:PORT/127.0.0.1:1/; s/[A-Z][A-Z]*/1/g; s/^close$/close 1/'; }
# takes COMMAND OPTION: does smcrctl take the option? It is not that far when it finds that no daemon runs. An
# option that wants an argument has one.
takes() {
	local try said
	for try in "$2=1" "$2=127.0.0.1" "$2"; do
		# shellcheck disable=SC2086
		said=$(smcrctl -s "$dir/none" $1 "$try" 2>&1)
		[[ $said != *' does not take '* ]] || return 1
		[[ $said == *'smcrd does not run'* || $said == *'smcrctl '[0-9]* || $said == *'exclude each other'* || $said == Usage* ]] && return 0
	done
	return 1
}
# Options of the general part of the help and those of commands.
all_options() { smcrctl --help | grep -o -- '--[a-z][a-z-]*' | sort -u; }
options_taken() {
	local option
	for option in $(all_options); do
		takes "$1" "$option" && echo "$option"
	done | paste -sd ' '
}

"tests/unit/fake_smcrd" "$sock" 2>"$dir/daemon.err" &
daemon=$!
for _ in $(seq 500); do
	[ -S "$sock" ] && break
	sleep 0.02
done

# An instance that runs, and two that could.
mkdir -p "$dir/run/smcrd-db-1" "$dir/etc" && touch "$dir/run/smcrd-db-1/control" "$dir/etc/"{smcrd,east,west}.conf

declare -A taken
while read -r example; do
	taken[$example]=$(options_taken "$example")
done < <(examples)
levels=$(sed -n '/^\.It Ic log_level$/{n; s/One of \(.*\); default.*/\1/; s/,//g; p}' "$src/man/smcrd.conf.5" | words_of)
options=$(smcrd --help | grep -oE '^  -[a-zA-Z]|--[a-z][a-z-]*' | words_of)

for shell in bash zsh; do
	if ! command -v "$shell" >/dev/null; then
		for what in options levels commands 'options of commands' names 'names of an attached socket' instances 'levels of log-level'; do
			skip "$shell: $what" "$shell is not installed"
		done
		continue
	fi
	equal "$shell: options of smcrd" "$options" "$(offered $shell smcrd -)"
	equal "$shell: log levels" "$levels" "$(offered $shell smcrd -d '')"
	equal "$shell: commands" "$(usages | cut -d ' ' -f 1 | words_of)" "$(offered $shell smcrctl '')"
	wanted= got=
	for example in "${!taken[@]}"; do
		# shellcheck disable=SC2086
		wanted+=" $example: ${taken[$example]}" got+=" $example: $(offered $shell smcrctl $example -)"
	done
	equal "$shell: options of each command" "$wanted" "$got"
	got=
	for line in 'service ' 'disable ' 'enable ' 'close ' 'connections --service ' 'rebalance ' 'links --group ' 'link ' \
		'link delete ' 'link delete 1 ' 'status --worker '; do
		# shellcheck disable=SC2086
		got+="$line: $(offered $shell smcrctl -s "$sock" $line ''), "
	done
	equal "$shell: names of services, groups, links and workers" "service : db web, disable : db web, enable :\
 db web, close : 1 2 3 4 5, connections --service : db web, rebalance : 1 2, links\
 --group : 1 2, link : $(usages | sed -n 's/^link \([a-z]*\).*/\1/p' | words_of), link delete : 1 2, link delete 1 : 1, status --worker : 1, " "$got"
	equal "$shell: names, of a socket that is attached to its option" 'db web, db web' \
		"$(offered $shell smcrctl "-s$sock" service ''), $(offered $shell smcrctl "--socket=$sock" service '')"
	equal "$shell: instances, those that run and those with a file" 'db-1, db-1, db-1, east west, east west' \
		"$(offered $shell smcrctl -i ''), $(offered $shell smcrctl status --instance ''), $(offered $shell smcrctl --instance ''), \
$(offered $shell smcrd -i ''), $(offered $shell smcrd --instance '')"
	equal "$shell: levels of log-level" "$(words_of <<<"$levels default")" "$(offered $shell smcrctl log-level '')"
done
echo "1..$n"
