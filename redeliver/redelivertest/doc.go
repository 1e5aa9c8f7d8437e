// Package redelivertest tests an application's handlers with a broker in memory.
// What becomes of a message is decided by the very engine that runs in
// production; only the broker is another one, and its clock moves when the test
// says so. A message that is retried for hours is tested in microseconds.
//
//	func TestShipping(t *testing.T) {
//		manifest, err := redeliver.LoadManifest("testdata/orders.manifest.json") // as in production
//		if err != nil {
//			t.Fatal(err)
//		}
//		b := redelivertest.New(t, manifest)
//		warehouse := &fakeWarehouse{closed: true}
//		b.Consume(redeliver.Config{}, redeliver.JSON(shipping{warehouse}.handle))
//
//		b.Publish(redeliver.Message{ID: "1", Body: []byte(`{"address": "here"}`)})
//		if len(b.Held()) != 1 {
//			t.Error("the order does not wait for the warehouse")
//		}
//		warehouse.closed = false
//		b.Advance(5 * time.Second) // the first delay of the topic's policy
//		if len(warehouse.shipped) != 1 {
//			t.Error("the order was not shipped when the warehouse had opened")
//		}
//	}
//
// [Manifest] makes a manifest for tests without Terraform. The tests of this
// package in guide_test.go show one feature each.
//
// # Rest
//
// Everything happens at once: handlers run in goroutines of their own, as many
// at a time as Config.Workers says. What looks at the broker or moves its clock
// waits until that is over, so that a test needs no sleep and no retry loop. A
// test that looks at something of its own, such as a fake database, calls
// [Broker.Wait] before. Advance and Finish wait too, after each thing that falls
// due.
//
// A handler that waits for the test to let it go on keeps all of these waiting:
// let it go on first.
//
// # What is emulated
//
// RabbitMQ's quorum and classic queues with what a topic's manifest can say of
// them, in three versions ([Version]): counting of deliveries and the delivery
// limit, dead-lettering with its headers, hold queues, delayed retries,
// priorities, single active consumers, the order in which messages come back, and
// what a lost connection costs. The suite that proves it runs on this broker and
// on real ones, and compares each message that a handler gets and each that is
// set aside, header by header.
//
// And Amazon SQS's standard and FIFO queues: visibility timeouts, receive counts,
// in which every receive counts, the redrive policy, retention, message groups,
// and receives of up to ten messages. The manifest says which broker it is. The
// same suite compares that with an emulator of the service.
//
// Not emulated are permissions, alarms, the consumer timeout, length limits, the
// expiration property of messages, and exchanges other than the topology's own: Publish
// puts a message straight into the work queue. Delays have no jitter. Messages of
// a topic with shards are spread by another hash than the broker's. Of Amazon SQS
// are not emulated the order of standard queues, which is none (here it is that
// of publishing), deduplication, throttling, the limit of messages in flight, and
// leases that are lost while a handler runs.
package redelivertest
