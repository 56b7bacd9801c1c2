# Boots systemd in namespaces, with a copy of the root directory that is thrown away, until standard
# input ends. Arguments: an empty directory, a script that prepares the copy from within, and the
# directories that are the same in it.
# This process waits in the mounts of its own, starts another one in all namespaces, and prints its id.
set -eu
dir=$1 prepare=$2
shift 2

mount --make-rprivate /
mount -t tmpfs tmpfs "$dir"
mkdir "$dir/up" "$dir/work" "$dir/root" "$dir/cgroup"
mount -t cgroup2 cgroup2 "$dir/cgroup"
group=$dir/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/quicterm-test-$$
mkdir "$group"
mount -t overlay -o "lowerdir=/,upperdir=$dir/up,workdir=$dir/work" overlay "$dir/root"
root=$dir/root
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
# Devices of its own: what is done to a name in /dev is not done to this machine's.
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/full" c 1 7
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
mkdir "$root/dev/pts" "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for same; do
	mkdir -p "$root$same"
	mount --bind "$same" "$root$same"
done
# No service that changes the kernel's state, which is shared with this machine, and none of the
# machine's own.
mkdir -p "$root/etc/systemd/system"
for unit in apparmor kmod-static-nodes ldconfig systemd-binfmt systemd-hwdb-update systemd-modules-load \
	systemd-random-seed systemd-remount-fs systemd-sysctl systemd-timesyncd systemd-udevd systemd-udev-trigger \
	systemd-update-utmp systemd-firstboot systemd-sysusers systemd-journal-flush systemd-machine-id-commit; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit.service"
done
for unit in dev-hugepages.mount dev-mqueue.mount sys-fs-fuse-connections.mount sys-kernel-config.mount \
	sys-kernel-debug.mount sys-kernel-tracing.mount proc-sys-fs-binfmt_misc.automount; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
rm -rf "$root"/etc/systemd/system/*.wants "$root/etc/machine-id"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
# What the shells of this machine's root run at their start may wait for locks, which the copy keeps for ever.
home=$(getent passwd 0 | cut -d: -f6)
rm -f "$root$home"/.bash* "$root$home"/.profile "$root$home"/.z*
chroot "$root" sh -euc "$prepare" >&2

export dir root
(
	echo 0 >"$group/cgroup.procs"
	exec unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup sh -euc '
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,ro,bind "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
ip link set lo up
mkdir -p "$root/old"
cd "$root"
pivot_root . old
umount -l /old
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system \
	--log-target=console --show-status=0 --unit=multi-user.target </dev/null >&2'
) &
echo $!
read -r _ || true
kill -9 $! || true
wait $! 2>/dev/null || true
for _ in $(seq 500); do # until the last of its processes is gone
	find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && exit
	sleep 0.02
done
exit 1
