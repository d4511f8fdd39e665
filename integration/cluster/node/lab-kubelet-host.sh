# What the kubelet reads or sets on a machine and a container does not have.
# "start" runs at every boot, as all of it is lost with the mounts; "stop" takes
# it back.
set -eu

own=/run/lab-sysctl

# The kubelet writes these to the kernel unless they hold its values already.
# The kernel is the host's, so files take their place.
settings='
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
'

case $1 in
start)
    mkdir -p /etc/kubernetes/manifests
    # The kubelet reads the kernel's log for processes killed for memory.
    [ -e /dev/kmsg ] || ln -s /dev/null /dev/kmsg
    echo "$settings" | while read -r name value; do
        [ -n "$name" ] || continue
        mkdir -p "$own/$(dirname "$name")"
        echo "$value" >"$own/$name"
        mountpoint -q "/proc/sys/$name" || mount --bind "$own/$name" "/proc/sys/$name"
    done
    # The bridge plugin turns forwarding on, for this network namespace alone.
    mountpoint -q /proc/sys/net || mount --bind /proc/sys/net /proc/sys/net
    mount -o remount,rw,bind /proc/sys/net
    # nspawn mounts the cgroup hierarchies of version 1 read-only.
    for dir in /sys/fs/cgroup /sys/fs/cgroup/*; do
        ! mountpoint -q "$dir" || mount -o remount,rw,bind "$dir"
    done
    ;;
stop)
    echo "$settings" | while read -r name value; do
        if [ -n "$name" ] && mountpoint -q "/proc/sys/$name"; then
            umount "/proc/sys/$name"
        fi
    done
    ! mountpoint -q /proc/sys/net || umount /proc/sys/net
    rm -rf "$own"
    [ ! -L /dev/kmsg ] || rm /dev/kmsg
    ;;
esac
