// Package baddisk makes a block device that fails when it is told to, with a file system on it, so that tests see what the
// kernel and the programs above make of errors of input and output. The device is a loop device over a file whose file
// system is a process of this package, by the protocol of FUSE: each read, write and flush of the device is answered there. It needs
// root, /dev/fuse, /dev/loop-control and mkfs.ext4, but neither the device mapper nor another module of the kernel.
//
// What the device holds lies in memory, and ends with the test.
//
// # Files
//
//   - device.go: the process that is the device, and what it refuses
//   - disk.go: how a test makes the device, mounts it and lets it fail
//   - fuse.go: the file that the device lies on
//   - sweep.go: what killed runs have left behind
package baddisk
