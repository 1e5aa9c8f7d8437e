// Package command is the operator's command, redeliver: what it is told, what it
// asks the broker, and what it prints.
//
//	root.go       the command line as a whole, exit codes
//	app.go        what every command has: streams, colours, the output format
//	connection.go which broker, as whom: flags, environment, files, a prompt
//	backend.go    what the commands need of a broker; rabbitmq.go is RabbitMQ's, sqs.go Amazon SQS's
//	manifests.go  reading manifests
//	table.go      tables for people
//
// and one file for each command. A command reads manifests, asks the [backend] of
// the manifest's broker, and prints a table or JSON. Which queue has which name
// and argument, the comparison with a broker and the picture are package
// topology's and verify's; how messages are moved is package transfer's.
//
// It must not know Terraform, and prints no secret: credentials come from the
// environment, files or a prompt, and a URL with a password in a flag is refused.
package command

//go:generate go run ./generate -markdown ../../docs/commands -man ../../docs/man
