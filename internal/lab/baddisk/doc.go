// Package baddisk makes a block device that fails on demand, with a file system on it, so that tests and field trials see how the kernel and the programs
// above handle errors of input and output. The device is a loop device over a file, and a process of this package serves that file's file
// system by the protocol of FUSE: it answers each read, write and flush of the device. The package needs root, /dev/fuse,
// /dev/loop-control and mkfs.ext4, but neither the device mapper nor another module of the kernel.
//
// The contents of the device are in memory, and are lost when the program ends.
//
// # Files
//
//   - device.go: the process that serves the device and refuses requests
//   - disk.go: how a test makes the device, mounts it and lets it fail
//   - fuse.go: the file under the device
//   - sweep.go: removes the mounts of killed runs
package baddisk
