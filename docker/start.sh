#!/bin/bash
# Prepares the container for whoever runs it, and starts the command. A user that the image does not know, and a root
# file system that cannot be written, get what they cannot write in the image in a temporary folder.
set -euo pipefail

say() { echo "gobnn: $*" >&2; }
fail() { say "$@"; exit 1; }

# Started as root, as with `--user root -e NB_UID=... -e NB_GID=...`: go on as that user.
if [[ $(id -u) == 0 ]]; then
	[[ $NB_UID =~ ^[0-9]+$ && $NB_GID =~ ^[0-9]+$ ]] || fail "NB_UID=$NB_UID, NB_GID=$NB_GID: must be numbers"
	[[ $NB_UID != 0 ]] || fail 'NB_UID=0: JupyterLab does not run as root'
	chown "$NB_UID:$NB_GID" /home/jovyan "${GOBNN_WORK:-/home/jovyan/work}" 2>/dev/null || true
	exec setpriv --reuid "$NB_UID" --regid "$NB_GID" --groups 100 --inh-caps=-all "$0" "$@"
fi

# The image's own numbers say nothing of what is wanted.
[[ $NB_UID == 1000 || $NB_UID == "$(id -u)" ]] && [[ $NB_GID == 100 || $NB_GID == "$(id -g)" ]] ||
	say "NB_UID=$NB_UID and NB_GID=$NB_GID are for --user root; this container runs as $(id -u):$(id -g)"

umask 002
home=/home/jovyan work=${GOBNN_WORK:-/home/jovyan/work} user="$(id -u):$(id -g)"

# writable FOLDER: whether a file can be made there. (A folder's mode does not tell: its disk may be full or read-only.)
writable() { mkdir -p "$1" 2>/dev/null && (probe=$(mktemp "$1/.gobnn.XXXXXX") && rm "$probe") 2>/dev/null; }

# full FOLDER: whether less than 64 MB are free there. A folder that could not be made is not full.
full() {
	local free
	free=$(df --output=avail -B1000000 "$1" 2>/dev/null | tail -1) && ((free < 64))
}

# passing FOLDER: whether it goes with the container: it is of the container's own file system, or of the volume without
# a name that Docker makes where none is mounted.
passing() {
	local at
	at=$(findmnt -n -o TARGET,FSROOT -T "$1") || return 1
	[[ $at == '/ '* || $at =~ /[0-9a-f]{64}(/_data)?$ ]]
}

# The folder that cells are compiled and run in: one that programs can be executed in, which /tmp is not with --tmpfs /tmp.
runs() {
	writable "$1" || return 1
	local probe result=0
	probe=$(mktemp "$1/.gobnn.XXXXXX") && printf '#!/bin/sh\n' > "$probe" && chmod 700 "$probe" || return 1
	"$probe" 2>/dev/null || result=1
	rm -f "$probe"
	return $result
}
temporary=
for folder in "${TMPDIR:-/tmp}" /tmp /var/tmp "$work/.tmp"; do
	[[ -d $folder || $folder == "$work/.tmp" ]] && runs "$folder" && ! full "$folder" && { temporary=$folder; break; }
done
if [[ -z $temporary ]]; then
	for folder in "${TMPDIR:-/tmp}" "$work"; do
		full "$folder" && fail "the disk of $folder is full: cells are compiled there; free some room, or name another folder: -e TMPDIR=..."
	done
	fail "no folder to compile cells in: mount one, as with --tmpfs /tmp:exec,mode=1777"
fi
export TMPDIR=$temporary

# The home folder holds settings; what the user keeps is in work.
if ! writable "$home"; then
	export HOME=$TMPDIR/home-$(id -u)
	mkdir -p "$HOME"
fi
if ! writable "$work"; then
	full "$work" && fail "the disk of $work is full: nothing could be saved; free some room on it"
	say "$work cannot be written by user $user: nothing is kept when the container stops."
	say "Run it as yourself, --user \"\$(id -u)\" --group-add users, with a folder of yours: -v \"\$PWD\":$work"
	work=$HOME/work
	mkdir -p "$work"
elif full "$work"; then
	fail "the disk of $work is full ($(df --output=avail -h "$work" | tail -1 | tr -d ' ') free): free some room on it"
elif passing "$work"; then
	say "no folder of yours is mounted: what is saved goes with the container (docker rm); -v gobnn-work:$work keeps it"
fi
export GOBNN_WORK=$work

# Checkpoints and results are kept with the user's notebooks; the environment is the image's.
if [[ $GOBNN_CACHE == "$GOBNN_IMAGE" ]]; then
	export GOBNN_CACHE=$work/.gobnn
	if ! writable "$GOBNN_CACHE"; then # made by another user of the same folder
		export GOBNN_CACHE=$HOME/.gobnn
		mkdir -p "$GOBNN_CACHE"
		say "$work/.gobnn cannot be written by user $user: checkpoints and results are kept in $GOBNN_CACHE, with the container"
	fi
	for part in env cuda tpu; do
		[[ -e $GOBNN_IMAGE/$part ]] && ln -sfn "$GOBNN_IMAGE/$part" "$GOBNN_CACHE/$part"
	done
fi

# Go's build cache must be writable: a folder of links to the image's, where that is not.
if ! writable "$GOCACHE"; then
	own=$TMPDIR/go-build-$(id -u)
	if [[ ! -d $own ]]; then
		cp -rs "$GOCACHE" "$own.$$"
		mv "$own.$$" "$own"
	fi
	export GOCACHE=$own
fi

for hook in /usr/local/bin/start-notebook.d/*.sh; do
	[[ -e $hook ]] && source "$hook"
done
exec "$@"
