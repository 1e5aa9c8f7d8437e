// Package rabbitmq opens a consumer on RabbitMQ.
//
//	manifest, err := redeliver.LoadManifest("orders.manifest.json") // the topic resource's manifest attribute
//	...
//	consumer, err := rabbitmq.Open(ctx, rabbitmq.Config{
//		URL:      os.Getenv("AMQP_URL"),
//		Manifest: manifest,
//		Handler:  redeliver.JSON(handleOrder),
//	})
//	...
//	return consumer.Run(ctx) // until ctx is done
//
// See the package example for a complete program, and package redeliver for
// handlers, outcomes and configuration.
//
// [HandleDead] opens a consumer of the topic's dead-letter queue, and [Replay]
// moves messages from there back to the work queue.
//
// # What the broker's user needs
//
// Read permission on the work queue, and nothing else, under most manifests:
// configure "^$", write "^$", read "^orders$". The consumer declares nothing
// and, under the strategies in_place and broker_delayed, publishes nothing.
// What publishes needs write permission on an exchange as well, which [Open]
// checks: the strategies republish and hybrid, park = "publish", and a
// convention whose work queue has no dead-letter exchange. Copies go through a
// second connection, for each shard of a sharded topic. The provider function
// build_permissions says what a manifest needs.
//
// # When the connection is lost
//
// The consumer connects and subscribes again by itself, with pauses that grow
// to 30 seconds. What it had not settled the broker delivers again, and so it
// does with acknowledgements of the last five milliseconds (see Config.AckEach):
// on a quorum queue each of those messages has spent one retry, started or not,
// which is why Config.Prefetch is small by default. A deleted queue and a message that
// was held longer than the consumer timeout are told apart from a lost
// connection in the log.
//
// RabbitMQ before 4.3 sends nothing any more to the consumers of a quorum queue
// that is deleted and made again in one moment, and does not tell them. A
// consumer that has nothing in hand looks at its queue every 10 seconds, and
// subscribes again where two looks find messages there that are sent to nobody.
// That shows only when there are more of them than Config.Prefetch, which the
// broker takes as sent; and of a sequenced topic only one consumer is sent any,
// so that the others cannot tell. Restart consumers after such an accident.
package rabbitmq
