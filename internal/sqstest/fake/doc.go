// Package fake is a small double of Amazon SQS for the rules that no emulator obeys, and for what a service does only on a
// bad day: 12 hours of invisibility in total, messages in flight over the limit, batches in which entries fail, requests
// that are throttled or whose answers are lost, handles that expire, receives that are repeated by their attempt id.
//
// It speaks the AWS JSON 1.0 protocol, so that the real client of the AWS SDK talks to it: in this process ([Service.Config],
// without a network), or over HTTP (a [Service] is an http.Handler).
//
// Its clock is that of package time. A test that moves it runs in a bubble of testing/synctest, where time moves as soon
// as everything waits: 12 hours pass in no time, and nothing else happens meanwhile. So it uses the client of this
// process, since a network's connections do not count as waiting there.
//
//	synctest.Test(t, func(t *testing.T) {
//		service := fake.New()
//		queue := service.CreateQueue(t, "orders", nil)
//		client := service.Client()
//		...
//	})
//
// It is tested against the facts in the comments of service_test.go, and is no reference for anything else: what a
// request says is hardly validated.
//
//	service.go   the protocol, and one function for each action
//	script.go    what goes wrong, and how many requests there were
//	errors.go    the service's errors
//	queue.go     queues and their messages
//	receive.go   receiving: visibility, redrive, the order of groups, long polls
//	settle.go    deleting and changing visibility
//	send.go      sending
//	move.go      message-move tasks
package fake
