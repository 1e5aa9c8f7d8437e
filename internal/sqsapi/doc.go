// Package sqsapi is what those share who send, receive and delete messages of
// Amazon SQS: the consumer's transport and the replay. It knows neither.
//
//	request.go   one request at a time, and the pauses between them
//	errors.go    what the service's errors mean
package sqsapi
