package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxJSONDepth bounds how deeply a document may nest; a manifest needs a handful.
const maxJSONDepth = 100

// decodeStrict reads one JSON value and nothing after it, with numbers kept as
// they are written. Unlike encoding/json it refuses an object that has a key
// twice: which one counts would be up to the reader.
func decodeStrict(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	value, err := decodeValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more text after its end")
	}
	return value, nil
}

func decodeValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("it nests deeper than %d levels", maxJSONDepth)
	}
	token, err := nextToken(dec)
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			element, err := decodeValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err := nextToken(dec)
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for dec.More() {
			key, err := nextToken(dec)
			if err != nil {
				return nil, err
			}
			name, _ := key.(string)
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("field %q is there twice", name)
			}
			if object[name], err = decodeValue(dec, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := nextToken(dec)
		return object, err
	default:
		return token, nil
	}
}

func nextToken(dec *json.Decoder) (json.Token, error) {
	token, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it ends too early")
	}
	return token, err
}
