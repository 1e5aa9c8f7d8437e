// Package amqp is what everything that speaks AMQP 0-9-1 in this module shares
// over amqp091-go: the consumer's transport and internal/transfer.
//
//	dial.go       connections: nodes, credentials that stay out of errors
//	tls.go        TLS as the configuration or the URL says
//	wire.go       the socket: frames that are larger than was agreed on are read
//	batch.go      what is written while a write goes on waits for the next one: that the library has written something
//	              does not mean that it has left, and only a confirm says that it has arrived
//	errors.go     what can become of a publish, and how a broker's reply reads
//	publisher.go  the pipelined, confirming publisher: its connection, its timeouts
//	lane.go       the copies on their way to one exchange or queue, and their writer
//	link.go       a channel in confirm mode: confirms, returns, its end
//	size.go       how large a message's header frame is
//	headers.go    a copy of a message, and which headers it keeps
//	queue.go      is a queue there, why was its consumer cancelled, are its settlements through
//
// It decides nothing about messages, declares nothing on a broker, and knows
// neither consumers nor Terraform.
package amqp
