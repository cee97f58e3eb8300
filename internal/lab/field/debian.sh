#!/bin/sh
# Puts a clean Debian under a program: in a namespace of mounts that the caller has made, so that all mounts end with the program.
#
# usage: debian.sh BASE DIR install FILE    installs a package of the gateway; FILE is a path in the Debian
#        debian.sh BASE DIR run COMMAND...  runs the installed gateway as its unit says, with COMMAND in the place of "run"
# BASE is a Debian that nobody writes to. DIR has upper, work and root for what is written, and data, the disk of the state directory.
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
base=$1 what=$3
cd "$2"
shift 3
mount -t overlay -o "lowerdir=$base,upperdir=upper,workdir=work" debian root
[ ! -d root/var/lib/aldis ] || mount --bind data root/var/lib/aldis
cd root
mount -t proc -o nosuid,nodev,noexec,hidepid=invisible proc proc
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
mount -t tmpfs -o nosuid,noexec,mode=755 tmpfs dev
for device in null:3 zero:5 full:7 random:8 urandom:9; do
	mknod -m 666 "dev/${device%:*}" c 1 "${device#*:}"
done
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs run
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs tmp
pivot_root . mnt # the gateway could make no user namespaces under chroot
cd /
umount -l /mnt
if [ "$what" = install ]; then
	exec env -i "PATH=$PATH" DEBIAN_FRONTEND=noninteractive dpkg -i "$1"
fi

unit() { sed -n "s/^$1=//p" /lib/systemd/system/aldis-gateway.service; }
user=$(unit User) state=/var/lib/$(unit StateDirectory)
install -d -o "$user" -g "$user" -m "$(unit StateDirectoryMode)" "$state"
install -d -o "$user" -g "$user" "/run/$(unit RuntimeDirectory)"
for file in /etc/aldis/*; do
	[ "$file" = /etc/aldis/gateway.toml ] || chown "$user" "$file" # keys
done
mount -o remount,bind,ro /
umask "$(unit UMask)"
ulimit -n "$(unit LimitNOFILE)" 2>/dev/null || : # more than this machine grants
program=$(unit ExecStart | sed "s/ run / $* /")
# shellcheck disable=SC2086 # the words of the unit's line
exec prlimit "--core=$(unit LimitCORE)" setpriv "--reuid=$user" "--regid=$user" --init-groups --no-new-privs --pdeathsig=KILL --inh-caps=-all --bounding-set=-all \
	env -i PATH=/usr/local/sbin:/usr/local/bin:"$PATH" "HOME=$state" "USER=$user" "LOGNAME=$user" SHELL=/usr/sbin/nologin LANG=C.UTF-8 $program
