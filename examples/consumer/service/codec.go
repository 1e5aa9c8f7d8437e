package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// maxInvoice is the longest invoice that is unpacked. What a few bytes unpack to
// is the publisher's choice, and MaxMessageSize does not see it.
const maxInvoice = 1 << 20

// packedJSON is a codec for JSON that may be compressed, as ContentEncoding
// says. It needs one method. Its errors mean that nobody can read the body:
// such messages are parked.
type packedJSON[T any] struct{}

func (packedJSON[T]) Decode(msg *redeliver.Message) (value T, err error) {
	body := msg.Body
	switch msg.ContentEncoding {
	case "":
	case "gzip":
		if body, err = unpack(body); err != nil {
			return value, fmt.Errorf("unpacking: %w", err)
		}
	default:
		return value, fmt.Errorf("the content encoding %q is not known here", msg.ContentEncoding)
	}
	return value, json.Unmarshal(body, &value)
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r, maxInvoice+1))
	if len(body) > maxInvoice {
		return nil, fmt.Errorf("it has more than %d bytes", maxInvoice)
	}
	return body, err
}
