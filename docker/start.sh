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

# passing FOLDER: whether it goes with the container: it is of the container's own file system, in memory (--tmpfs), or of
# the volume without a name that Docker makes where none is mounted.
passing() {
	local at passes='^[^ ]+ / |^tmpfs [^ ]+ /$|/[0-9a-f]{64}(/_data)?$'
	at=$(findmnt -rn -o FSTYPE,TARGET,FSROOT -T "$1") && [[ $at =~ $passes ]]
}

# refuse: ends the start where the folder that the user has mounted, or named by GOBNN_WORK, cannot be written. In another
# folder a day's work would be lost with the container, and the line that told of it would long have scrolled away.
refuse() {
	local owner group mode
	say "$work cannot be written by user $user: nothing could be saved, so JupyterLab is not started."
	if ! read -r owner group mode < <(stat -c '%u %g %A' "$work" 2>/dev/null); then
		say "It is not there, and cannot be made: mount a folder of yours there, -v FOLDER:$work"
	elif [[ ,$(findmnt -rn -o OPTIONS -T "$work"), == *,ro,* ]]; then
		say "It can only be read: leave out \`:ro\` where it is mounted, or mount a folder of yours there, -v FOLDER:$work"
	elif [[ $owner == "$(id -u)" ]]; then
		say "It is this user's, with mode $mode: chmod u+rwx FOLDER, or, with SELinux, -v FOLDER:$work:z"
	elif [[ $group == 100 && $mode == ?????w* ]]; then
		say 'The group users may write it: --group-add users'
	elif [[ $owner == 0 ]]; then
		say 'It is root'\''s, as is a folder that Docker makes where there is none. Give it to yourself, sudo chown "$(id -u)" FOLDER,'
		say 'and run the container as yourself, --user "$(id -u)" --group-add users'
	else
		say "It is of user $owner, who can save there: --user $owner --group-add users"
	fi
	fail "Or take a volume, $volume; or go without, -e GOBNN_WORK=/tmp/work, in a folder that is lost with the container."
}

volume="-v gobnn-work:$home/work"
[[ $work == "$home/work" ]] || volume+=" without GOBNN_WORK"
if ! writable "$work" && ! full "$work" && { [[ $work != "$home/work" ]] || ! passing "$work"; }; then refuse; fi

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
	say "$work cannot be written by user $user, and no folder of yours is mounted:"
	work=$TMPDIR/work-$(id -u)
	mkdir -p "$work"
	say "what is saved is in $work and goes with the container (docker rm); $volume --group-add users keeps it"
elif full "$work"; then
	fail "the disk of $work is full ($(df --output=avail -h "$work" | tail -1 | tr -d ' ') free): free some room on it"
elif passing "$work"; then
	say "no folder of yours is mounted: what is saved goes with the container (docker rm); $volume keeps it"
fi
export GOBNN_WORK=$work

# Checkpoints and results are kept with the user's notebooks; the environment is the image's.
if [[ $GOBNN_CACHE == "$GOBNN_IMAGE" ]]; then
	export GOBNN_CACHE=$work/.gobnn
	if ! writable "$GOBNN_CACHE"; then # made by another user of the same folder
		export GOBNN_CACHE=$work/.gobnn-$(id -u)
		mkdir -p "$GOBNN_CACHE"
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
