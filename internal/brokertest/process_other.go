//go:build !linux

package brokertest

import "syscall"

// dieWithParent does nothing: only Linux has it, and only Docker runs brokers elsewhere, whose containers
// notice our end by themselves.
func dieWithParent(*syscall.SysProcAttr) {}
