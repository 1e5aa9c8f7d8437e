package rabbitmqadmin

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// testsAtOnce is how many tests run beside each other unless -parallel says otherwise. They wait for the broker's
// statistics and hardly compute, so that the number of processors, which is the default, is far too low.
const testsAtOnce = 16

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := parallel.Value.Set(strconv.Itoa(testsAtOnce)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
