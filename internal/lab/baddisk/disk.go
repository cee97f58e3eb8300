package baddisk

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Octets of a device.
const Octets = 64 << 20

// DataFrom is the first octet after the blocks in which the file system describes itself, its own journal among them. If only octets from
// there on fail, the file system goes on; if all fail, it shuts itself down. With the options of New, mkfs.ext4 needs 1049 blocks.
const DataFrom = 1049 * 4096

// Failure says which requests a device refuses. Each refused request fails with an error of input or output.
type Failure struct {
	From   int64 // the first octet of the part that fails
	Writes bool
	Reads  bool
	// After is how many writes to that part still work; with only Reads it is 0.
	After int
	// Slow is how much longer each flush takes, and so each write that reaches the medium.
	Slow time.Duration
}

// Disk is a device that can fail. It is for one goroutine.
type Disk struct {
	dir     string // the directory that holds the file
	child   *exec.Cmd
	orders  *gob.Encoder
	told    *gob.Decoder
	pipes   []*os.File
	loop    *os.File
	shared  string // the directory on which its file system is mounted, as a mount of its own; "": nowhere
	mounted bool
	closed  bool
}

// New makes a device with an empty ext4 file system. dir is an empty directory for its own use.
func New(dir string) (d *Disk, err error) {
	d = &Disk{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("baddisk: %w (it needs root)", err), d.Close())
		}
	}()
	if err := sweep(); err != nil {
		return d, err
	}
	if err := d.start(); err != nil {
		return d, err
	}
	if err := d.attach(); err != nil {
		return d, err
	}
	// Little of it is for the file system's own blocks, and those are at its beginning.
	out, err := exec.Command("mkfs.ext4", "-q", "-F", "-b", "4096", "-N", "256", "-J", "size=4", "-O", "^resize_inode",
		"-E", "packed_meta_blocks=1,nodiscard,lazy_itable_init=0,lazy_journal_init=0", d.loop.Name()).CombinedOutput()
	if err != nil {
		return d, fmt.Errorf("mkfs.ext4: %w: %s", err, bytes.TrimSpace(out))
	}
	return d, nil
}

// start mounts the file and starts the process that serves it. That process ends when this one does, because its pipe closes.
func (d *Disk) start() error {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/fuse: %w", err)
	}
	fuse := os.NewFile(uintptr(fd), "/dev/fuse")
	defer fuse.Close()
	if err := unix.Mount(childName, d.dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40700,user_id=0,group_id=0", fd)); err != nil {
		return fmt.Errorf("mount of a FUSE file system: %w", err)
	}
	orderedOut, orders, err := os.Pipe()
	if err != nil {
		return err
	}
	defer orderedOut.Close()
	told, toldIn, err := os.Pipe()
	if err != nil {
		return errors.Join(err, orders.Close())
	}
	defer toldIn.Close()
	d.pipes, d.orders, d.told = []*os.File{orders, told}, gob.NewEncoder(orders), gob.NewDecoder(told)
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Stderr = []string{childName}, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C does not reach it
	cmd.ExtraFiles = []*os.File{fuse, orderedOut, toldIn}
	if err := cmd.Start(); err != nil {
		return err
	}
	d.child = cmd
	return nil
}

// attach puts a loop device on the file. Another process may first take the free one that the kernel names.
func (d *Disk) attach() error {
	ctl, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer ctl.Close()
	image, err := os.OpenFile(filepath.Join(d.dir, imageName), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer image.Close()
	for range 100 {
		n, err := unix.IoctlRetInt(int(ctl.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return fmt.Errorf("a free loop device: %w", err)
		}
		name := fmt.Sprintf("/dev/loop%d", n)
		if err := unix.Mknod(name, unix.S_IFBLK|0o600, int(unix.Mkdev(7, uint32(n)))); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		dev, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		switch err := unix.IoctlLoopConfigure(int(dev.Fd()), &unix.LoopConfig{Fd: uint32(image.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}); {
		case err == nil:
			d.loop = dev
			return nil
		case !errors.Is(err, unix.EBUSY):
			dev.Close()
			return fmt.Errorf("%s: %w", name, err)
		}
		dev.Close()
	}
	return errors.New("no loop device is free")
}

// Mount mounts the file system at a directory.
func (d *Disk) Mount(at string) error {
	// Other namespaces may copy the mount at any time. If it lies under a shared mount, they receive its unmount too.
	err := unix.Mount(at, at, "", unix.MS_BIND, "")
	if err == nil {
		d.shared = at
		err = errors.Join(unix.Mount("", at, "", unix.MS_PRIVATE, ""), unix.Mount("", at, "", unix.MS_SHARED, ""))
	}
	if err != nil {
		return fmt.Errorf("baddisk: mount of %s on itself: %w", at, err)
	}
	return d.mount()
}

func (d *Disk) mount() error {
	if err := unix.Mount(d.loop.Name(), d.shared, "ext4", 0, "errors=continue"); err != nil {
		return fmt.Errorf("baddisk: mount at %s: %w", d.shared, err)
	}
	d.mounted = true
	return nil
}

// Remount mounts the file system anew, as after a start of the machine: the kernel's caches of it are empty. It fails while a process
// uses the file system.
func (d *Disk) Remount() error {
	if err := d.unmount(0); err != nil {
		return err
	}
	if err := d.forget(); err != nil {
		return err
	}
	return d.mount()
}

// forget waits until no namespace has the file system mounted, and has the kernel drop its cache of the device.
func (d *Disk) forget() error {
	const most = 10 * time.Second
	for end := time.Now().Add(most); ; time.Sleep(10 * time.Millisecond) {
		fd, err := unix.Open(d.loop.Name(), unix.O_RDWR|unix.O_EXCL|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.IoctlSetInt(fd, unix.BLKFLSBUF, 0)
			return errors.Join(err, unix.Close(fd))
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return fmt.Errorf("baddisk: %s is still in use: %w", d.loop.Name(), err)
		}
	}
}

func (d *Disk) unmount(flags int) error {
	if !d.mounted {
		return nil
	}
	if err := unix.Unmount(d.shared, flags); err != nil {
		return fmt.Errorf("baddisk: umount of %s: %w", d.shared, err)
	}
	d.mounted = false
	return nil
}

// Fail orders a failure, which replaces the one before.
func (d *Disk) Fail(f Failure) error { _, err := d.request(order{Change: true, To: &f}); return err }

// Heal ends the failure. Refused writes are not on the device.
func (d *Disk) Heal() error { _, err := d.request(order{Change: true}); return err }

// LosePower drops all writes that no flush has made durable, and mounts the file system anew. It fails while a process uses the file
// system.
func (d *Disk) LosePower() error {
	if _, err := d.request(order{Change: true, To: &Failure{Writes: true}}); err != nil { // nothing more reaches it
		return err
	}
	err := d.unmount(unix.MNT_DETACH)
	if err == nil {
		err = d.forget()
	}
	if _, lost := d.request(order{Change: true, Forgets: true}); lost != nil || err != nil {
		return errors.Join(err, lost)
	}
	if err := d.forget(); err != nil {
		return err
	}
	return d.mount()
}

// Refused is how many requests the device has refused.
func (d *Disk) Refused() (int, error) { return d.request(order{}) }

func (d *Disk) request(o order) (refused int, err error) {
	if err = d.orders.Encode(o); err == nil {
		err = d.told.Decode(&refused)
	}
	if err != nil {
		err = fmt.Errorf("baddisk: the device has ended: %w", err)
	}
	return refused, err
}

// Close removes the device and the file system, even while a program uses it. Only the first call does so.
func (d *Disk) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	var errs []error
	if d.child != nil {
		errs = append(errs, d.Heal())
	}
	errs = append(errs, d.unmount(unix.MNT_DETACH))
	if d.shared != "" {
		errs = append(errs, unix.Unmount(d.shared, unix.MNT_DETACH))
	}
	if d.loop != nil {
		errs = append(errs, d.loop.Close())
	}
	if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		errs = append(errs, err)
	}
	for _, f := range d.pipes {
		errs = append(errs, f.Close()) // the device ends even if a program still uses it
	}
	if d.child != nil {
		errs = append(errs, d.child.Wait())
	}
	return errors.Join(errs...)
}
