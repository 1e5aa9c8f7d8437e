package migration

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// testsAtOnce is how many tests run beside each other unless -parallel says otherwise: most of their time they wait for
// the broker's statistics.
const testsAtOnce = 12

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := parallel.Value.Set(strconv.Itoa(testsAtOnce)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
