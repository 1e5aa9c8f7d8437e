package brokertest

import "syscall"

// dieWithParent makes the kernel kill the child when the thread that starts it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
