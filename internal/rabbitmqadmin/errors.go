package rabbitmqadmin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// What an [*Error] is, for errors.Is.
var (
	// ErrNotFound: RabbitMQ itself said that the object is not there, in a vhost that this client can read. A 404 of a
	// proxy, of a wrong path or for a vhost that is hidden from the user is never this error.
	ErrNotFound = errors.New("not found")
	// ErrVHostUnreadable: the vhost does not exist, or the user may not see it. RabbitMQ does not tell these apart.
	ErrVHostUnreadable = errors.New("vhost not readable")
	// ErrUnauthorized: a 401 or 403. It is also ErrCredentials or ErrPermission where the broker's reason tells.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrCredentials: the user name or the password is wrong.
	ErrCredentials = errors.New("wrong credentials")
	// ErrToken: the access token could not be had, or is none.
	ErrToken = errors.New("no access token")
	// ErrPermission: the user is known, and lacks a tag or a permission.
	ErrPermission = errors.New("missing permission")
)

// The values of [Error.Op].
const (
	opRead   = "read"
	opList   = "list"
	opCreate = "create"
	opDelete = "delete"
	opBind   = "create"
	opUnbind = "remove"
)

// Error is an answer that is not the one that was asked for, or none because the context ended.
type Error struct {
	Op     string // what was being done: "create", "read", "list", ...
	Object string // to what: `queue "orders"`
	VHost  string // "" where there is none
	Method string // HTTP method
	URL    string // without credentials
	Status int    // HTTP status; 0 without an answer
	Reason string // what the broker said, or the start of what somebody else said, quoted
	Advice string // what to do about it; may be empty

	kinds []error
	cause error
}

// Error says what was being done to what, what the broker said, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot %s", describe(e.Op, e.Object, e.VHost))
	switch {
	case e.Status != 0:
		fmt.Fprintf(&b, ": %s %s was answered %d %s", e.Method, e.URL, e.Status, http.StatusText(e.Status))
		if e.Reason != "" {
			fmt.Fprintf(&b, ": %s", e.Reason)
		}
	case e.Reason != "":
		fmt.Fprintf(&b, ": %s", e.Reason)
	case e.cause != nil:
		fmt.Fprintf(&b, ": %v", e.cause)
	}
	if e.Advice != "" {
		fmt.Fprintf(&b, "; %s", e.Advice)
	}
	return b.String()
}

// Is makes errors.Is work with the sentinels of this package.
func (e *Error) Is(target error) bool {
	for _, kind := range e.kinds {
		if kind == target {
			return true
		}
	}
	return false
}

// Unwrap returns the cause: the context's error, or one of encoding/json.
func (e *Error) Unwrap() error { return e.cause }

// MissingExchange reports whether a binding was refused because its exchange is not there, in contrast to its queue.
func (e *Error) MissingExchange() bool {
	return e.Is(ErrNotFound) && strings.HasPrefix(e.Reason, "no exchange ")
}

// IsMissingExchange reports whether that is what an error is about.
func IsMissingExchange(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.MissingExchange()
}

func describe(op, object, vhost string) string {
	if vhost == "" {
		return op + " " + object
	}
	return fmt.Sprintf("%s %s in vhost %q", op, object, vhost)
}

// InequivalentError says that an object of this name exists and is not the one that was declared.
type InequivalentError struct {
	VHost string
	// Queue or Exchange is its name; the other is empty.
	Queue, Exchange string
	// Reason is the broker's: it names the argument, what was received and what is current.
	Reason string
}

func (e *InequivalentError) Error() string {
	return fmt.Sprintf("%s in vhost %q exists and differs: %s; RabbitMQ cannot change it in place: make the configuration equal to it, or delete it and create it again",
		e.object(), e.VHost, e.Reason)
}

func (e *InequivalentError) object() string {
	if e.Exchange != "" {
		return exchangeObject(e.Exchange)
	}
	return queueObject(e.Queue)
}

// UnreachableError says that no endpoint gave an answer.
type UnreachableError struct {
	Op, Object, VHost string
	// Endpoints and Causes belong together, in the order of the last round.
	Endpoints []string
	Causes    []error
	// Tries is how often each endpoint was tried.
	Tries int
}

func (e *UnreachableError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot %s: ", describe(e.Op, e.Object, e.VHost))
	if e.Tries > 1 {
		fmt.Fprintf(&b, "after %d tries ", e.Tries)
	}
	b.WriteString("no endpoint answers")
	for i, cause := range e.Causes {
		fmt.Fprintf(&b, "; %s: %v", e.Endpoints[i], cause)
		if hint := connectionHint(cause); hint != "" {
			fmt.Fprintf(&b, " (%s)", hint)
		}
	}
	return b.String()
}

// Unwrap returns the causes.
func (e *UnreachableError) Unwrap() []error { return e.Causes }

func queueObject(name string) string    { return fmt.Sprintf("queue %q", name) }
func exchangeObject(name string) string { return fmt.Sprintf("exchange %q", name) }
