package brokertest

import (
	"flag"
	"strconv"
)

// AtOnce lets n tests of a package run beside each other, unless -parallel says otherwise. Tests that wait for a broker hardly
// compute, so that the number of processors, which is the default, is far too low. TestMain calls it.
func AtOnce(n int) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if asked {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // outside of a test
	}
}
