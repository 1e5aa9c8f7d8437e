package brokertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// ports are the five ports of a node, all on 127.0.0.1.
type ports struct {
	amqp, management, distribution, epmd int
	// secure is for a TLS listener, where the configuration has one.
	secure int
}

const (
	firstPort = 20000
	// lastPort is used where the kernel does not say where its own range begins; that is Linux's default.
	lastPort = 32767
	// defaultDistributionPort lies in our range and belongs to a RabbitMQ service, running or not.
	defaultDistributionPort = 25672
)

// errPortTaken says that a port which was free when it was picked was in use when the node wanted it.
var errPortTaken = errors.New("another process took one of the node's ports in between")

// pickPorts picks free ports below the range from which the kernel takes local ports of outgoing
// connections. A port of that range could be taken by any client while a node is down between Kill and
// Restart, and a client that redials a dead broker there may even be connected to itself.
func pickPorts() (ports, error) {
	last := lastPort
	if low, ok := ephemeralLow(); ok && low > firstPort+1000 {
		last = low - 1
	}
	var (
		picked  []int
		holders []net.Listener // held until all are picked, so that no port is picked twice
	)
	defer func() {
		for _, l := range holders {
			_ = l.Close()
		}
	}()
	for tries := 0; len(picked) < 5; tries++ {
		if tries == 1000 {
			return ports{}, fmt.Errorf("picking ports for a RabbitMQ node: found no free ports on 127.0.0.1 between %d and %d", firstPort, last)
		}
		port := firstPort + rand.IntN(last-firstPort+1)
		if port == defaultDistributionPort {
			continue
		}
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		holders = append(holders, l)
		picked = append(picked, port)
	}
	return ports{amqp: picked[0], management: picked[1], distribution: picked[2], epmd: picked[3], secure: picked[4]}, nil
}

// ephemeralLow returns the lowest local port that the kernel gives to outgoing connections.
func ephemeralLow() (int, bool) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, false
	}
	var low, high int
	if _, err := fmt.Sscan(string(text), &low, &high); err != nil {
		return 0, false
	}
	return low, true
}
