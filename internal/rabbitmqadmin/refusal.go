package rabbitmqadmin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// quotedBody is how much is quoted of an answer that RabbitMQ did not write.
const quotedBody = 160

// brokerError is the body of RabbitMQ's own refusals.
type brokerError struct {
	Error  string `json:"error"`
	Reason string `json:"reason"`
}

// parseBrokerError reports whether a body has the form of RabbitMQ's refusals.
func parseBrokerError(body []byte) (brokerError, bool) {
	var e brokerError
	err := json.Unmarshal(body, &e)
	return e, err == nil && e.Error != "" && e.Reason != ""
}

// answerError describes an answer without judging it.
func (x *call) answerError(a *answer) *Error {
	e := &Error{Op: x.op, Object: x.object, VHost: x.vhost, Method: a.method, URL: a.url, Status: a.status}
	if own, ok := parseBrokerError(a.body); ok {
		e.Reason = strings.TrimRight(own.Reason, ".")
	} else if text := quote(a.body); text != "" {
		e.Reason = "not RabbitMQ's own words: " + text
	}
	return e
}

// quote cuts somebody else's text and keeps it on one line.
func quote(body []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "?")), " ")
	if text == "" {
		return ""
	}
	if runes := []rune(text); len(runes) > quotedBody {
		text = string(runes[:quotedBody]) + "..."
	}
	return fmt.Sprintf("%q", text)
}

// strange is a success that is not RabbitMQ's.
func (x *call) strange(a *answer, cause error) *Error {
	e := x.answerError(a)
	e.cause = cause
	e.Reason = "that is no answer of RabbitMQ's management API"
	if text := quote(a.body); text != "" {
		e.Reason += ": " + text
	}
	e.Advice = "is the endpoint right, and is there a proxy or a login page in between?"
	return e
}

// refused judges an answer of 300 or more.
func (x *call) refused(a *answer) error {
	e := x.answerError(a)
	own, isOwn := parseBrokerError(a.body)
	switch {
	case a.status < http.StatusBadRequest:
		e.Reason = fmt.Sprintf("a redirect to %q", a.header.Get("Location"))
		e.Advice = "redirects are not followed, because the credentials are not for others: set the endpoint to where RabbitMQ is"
	case a.status == http.StatusProxyAuthRequired:
		e.Advice = "the HTTP proxy wants credentials: put them into the URL in http_proxy"
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		x.unauthorized(e, own, isOwn)
	case a.status == http.StatusBadRequest && strings.Contains(own.Reason, "exclusive access to locked queue"):
		e.Advice = "the queue is exclusive to another connection, and goes when that closes"
	case a.status == http.StatusNotFound:
		return x.notFound(e, own, isOwn)
	case (a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotAcceptable) && !isOwn:
		// What RabbitMQ's web interface answers to a path that is none of the API's.
		e.Advice = "RabbitMQ's management API is not at this path: is the endpoint's path prefix right (it is without \"/api\")?"
	}
	return e
}

// unauthorized tells what a 401 or 403 is about. RabbitMQ answers 401 to wrong credentials and to missing permissions
// alike, and says which only in the text, which changed: "Login failed" on 3.10, "Not_Authorized" on 4.3.
func (x *call) unauthorized(e *Error, own brokerError, isOwn bool) {
	user := x.client.cfg.identity()
	e.kinds = []error{ErrUnauthorized}
	switch {
	case x.client.cfg.Username == "" && x.client.cfg.Token == nil:
		e.kinds = append(e.kinds, ErrCredentials)
		e.Advice = x.client.cfg.notAccepted()
	case !isOwn:
		e.Advice = "this did not come from RabbitMQ: does a proxy in between want credentials of its own (set them as headers), or does the endpoint lead elsewhere?"
	case own.Error == "not_authorized":
		e.kinds = append(e.kinds, ErrCredentials)
		e.Advice = x.client.cfg.notAccepted()
	case own.Reason == "Not management user":
		e.kinds = append(e.kinds, ErrPermission)
		e.Advice = fmt.Sprintf("give %s the tag \"management\", without which RabbitMQ's management API is closed to it%s", user, x.client.cfg.scope("tag:management"))
	case strings.HasPrefix(own.Reason, "Not ") && strings.HasSuffix(own.Reason, " user"):
		e.kinds = append(e.kinds, ErrPermission)
		e.Advice = fmt.Sprintf("give %s the tag that the reason names", user)
	case own.Reason == "User not authorised to access virtual host":
		e.kinds = append(e.kinds, ErrPermission, ErrVHostUnreadable)
		e.Advice = fmt.Sprintf("%s has no permissions in vhost %q: grant it some%s", user, x.vhost, x.client.cfg.scope("read:VHOST/*"))
	default:
		e.kinds = append(e.kinds, ErrPermission)
		e.Advice = fmt.Sprintf("%s lacks a permission in vhost %q: %s%s", user, x.vhost, x.needs(), x.client.cfg.scope(x.missingScope()))
	}
}

// missingScope is how a token spells what a refused operation takes first.
func (x *call) missingScope() string {
	if strings.HasPrefix(x.object, "binding") {
		return "read:VHOST/EXCHANGE/ROUTING-KEY" // RabbitMQ looks at the third part where the exchange is a topic exchange
	}
	return "configure:VHOST/NAME"
}

// needs says which permissions a refused operation takes. The brokers say "Access refused." and no more.
func (x *call) needs() string {
	switch {
	case strings.HasPrefix(x.object, "queue") && x.op == opCreate:
		return "creating a queue takes configure on it and, with a dead-letter exchange, read on it and write on that exchange (called amq.default where its name is empty)"
	case strings.HasPrefix(x.object, "policy"):
		return "writing policies takes the user tag \"policymaker\" (or \"administrator\")"
	case strings.HasPrefix(x.object, "exchange") && x.op == opCreate:
		return "creating an exchange takes configure on it and, with an alternate exchange, read on it and write on that one; names that begin with \"amq.\" are reserved"
	case strings.HasPrefix(x.object, "binding"):
		return "a binding takes read on the exchange and write on the queue or exchange it leads to"
	case x.op == opDelete:
		return "deleting takes configure on it"
	}
	return "check its configure, write and read expressions"
}

// notFound decides what a 404 means. Only RabbitMQ's own about an object of a vhost that is known to be readable at this
// endpoint is ErrNotFound: everything else must not be taken for "it is gone".
func (x *call) notFound(e *Error, own brokerError, isOwn bool) error {
	switch {
	case !isOwn, x.vhost == "", own.Error != "Object Not Found" && own.Error != "not_found":
		e.Advice = "this did not come from where RabbitMQ keeps its objects: check the endpoint and its path prefix (without \"/api\")"
		return e
	case own.Reason == "vhost_not_found", x.object == vhostObject, x.op == opList:
		x.vhostUnreadable(e)
		return e
	case own.Error == "not_found" && !strings.HasPrefix(own.Reason, "no queue ") && !strings.HasPrefix(own.Reason, "no exchange "):
		// What 4.3 answers where the vhost is hidden from the user.
		x.vhostUnreadable(e)
		return e
	}
	switch err := x.client.vhostReadable(x.ctx, x.answered, x.vhost); {
	case errors.Is(err, ErrVHostUnreadable):
		x.vhostUnreadable(e)
		return e
	case err != nil:
		e.cause = err
		e.Advice = fmt.Sprintf("that says nothing about the object as long as the vhost cannot be read: %v", err)
		return e
	}
	e.kinds = []error{ErrNotFound}
	return e
}

func (x *call) vhostUnreadable(e *Error) {
	e.kinds = append(e.kinds, ErrVHostUnreadable)
	e.Advice = fmt.Sprintf("vhost %q does not exist, or %s has no permissions in it, or the endpoint's path is wrong: nothing is concluded about what is in it",
		x.vhost, x.client.cfg.identity())
}
