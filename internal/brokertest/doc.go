// Package brokertest starts private RabbitMQ nodes for tests and for the demo, and gives tests a vhost
// of their own on one.
//
// Tests that need a broker call [Shared] and then [VHost]: many tests use one node at the same time, and
// none sees another's queues. Tests that break the broker (a crash, an alarm, a setting of their own)
// call [Dedicated] and get a node that nobody else uses, or [Cluster] and get several. All skip when no broker was announced in the
// environment, so that a plain "go test ./..." is quick and needs nothing; "make test" runs everything
// under the withbroker command, which starts the shared node.
//
// A node is private in every respect: loopback only, on ports it picked itself, with its own directory,
// cookie, password and epmd. It is stopped by its own process id, and it dies with the process that
// started it, even when that one is killed: see process.go for how. Nothing here ever touches a RabbitMQ
// that runs as a service.
//
// This package must not import any other package of this module: it is what they are tested with. It
// supports Linux, and other unixes where Docker runs.
//
// Start reading at [Start] in broker.go; source.go decides where a node's program comes from.
package brokertest
