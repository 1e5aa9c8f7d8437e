package brokertest

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
)

// TestTakenPortsAreTold takes a port between picking it and starting the node: Start tries again with others
// when the error says so.
func TestTakenPortsAreTold(t *testing.T) {
	t.Parallel()
	if os.Getenv(EnvAMQPURL) == "" {
		t.Skip(skipMessage)
	}
	src, isNative := mustFindSource(t).(native)
	if !isNative {
		t.Skip("Docker takes the ports itself")
	}
	for name, port := range map[string]func(ports) int{
		"epmd":         func(p ports) int { return p.epmd },
		"distribution": func(p ports) int { return p.distribution },
		"AMQP":         func(p ports) int { return p.amqp },
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := newWorkDir(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n := &node{name: nodeName(1), src: src, dir: dir, password: "p", cookie: "c"}
			t.Cleanup(func() {
				if err := n.close(); err != nil {
					t.Error(err)
				}
			})
			if n.ports, err = pickPorts(); err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port(n.ports))))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := n.configure(); err != nil {
				t.Fatal(err)
			}
			if err := n.boot(context.WithoutCancel(t.Context())); !errors.Is(err, errPortTaken) {
				t.Errorf("got %v, want %v", err, errPortTaken)
			}
		})
	}
}
