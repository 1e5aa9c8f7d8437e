package redeliverotel_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"
)

// took is how long the handlers of these tests took.
const took = 30 * time.Millisecond

var errBoom = errors.New("boom")

// every is Stats in which each counter has a value of its own.
func every() (redeliver.Stats, map[string]uint64) {
	var stats redeliver.Stats
	fields := make(map[string]uint64)
	v := reflect.ValueOf(&stats).Elem()
	for i := range v.NumField() {
		switch field := v.Field(i); field.Kind() {
		case reflect.Uint64:
			field.SetUint(uint64(100 + i))
			fields[v.Type().Field(i).Name] = field.Uint()
		case reflect.Int:
			field.SetInt(int64(100 + i))
			fields[v.Type().Field(i).Name] = uint64(field.Int())
		default: // SetAsideFailures
		}
	}
	stats.SetAsideFailures = map[string]uint64{"orders-dlq": stats.SetAsideFailed}
	return stats, fields
}

// Every number of Stats is reported once, and every metric is one of them, but for the histogram and the health.
func TestMetricsAreStats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stats, fields := every()
	w.watch("orders", stats)
	found := make(map[uint64]string)
	for _, m := range w.collect() {
		list := points(m)
		if len(list) != 1 {
			t.Errorf("%s: %d values", m.Name, len(list))
			continue
		}
		if m.Name == "redeliver.health" {
			continue
		}
		value := uint64(list[0].Value)
		if other, ok := found[value]; ok {
			t.Errorf("%s and %s are the same", m.Name, other)
		}
		found[value] = m.Name
	}
	for field, value := range fields {
		if _, ok := found[value]; !ok {
			t.Errorf("Stats.%s is not reported", field)
		}
		delete(found, value)
	}
	if len(found) > 0 {
		t.Errorf("reported and not in Stats: %v", found)
	}
}

// TestDocumentation: doc.go lists what is registered.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string)
	for _, row := range regexp.MustCompile(`(?m)^//\t(\S+) +(histogram|counter|updowncounter|gauge) +(\S+) +\S`).FindAllStringSubmatch(string(source), -1) {
		documented[row[1]] = row[2] + " " + row[3]
	}
	w := newWorld(t)
	stats, _ := every()
	w.watch("orders", stats).handle(&redeliver.Message{}, func(context.Context) redeliver.Outcome { return redeliver.Ack() })
	registered := make(map[string]string)
	for _, m := range w.collect() {
		kind := "gauge"
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			kind = "histogram"
		case metricdata.Sum[int64]:
			kind = "updowncounter"
			if data.IsMonotonic {
				kind = "counter"
			}
		}
		registered[m.Name] = kind + " " + m.Unit
		if m.Description == "" || !strings.HasSuffix(m.Description, ".") {
			t.Errorf("%s: description %q", m.Name, m.Description)
		}
	}
	if !maps.Equal(documented, registered) {
		for name, as := range registered {
			if documented[name] != as {
				t.Errorf("%s is %s; documented: %q", name, as, documented[name])
			}
		}
		for name := range documented {
			if registered[name] == "" {
				t.Errorf("%s is documented and not registered", name)
			}
		}
	}
}

func TestCounterAttributes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.watch("orders", redeliver.Stats{SetAsideFailed: 5, SetAsideFailures: map[string]uint64{"orders-dlq": 2, "orders-parked": 3}})
	queue := map[string]string{
		"messaging.system": "rabbitmq", "messaging.destination.name": "orders", "redeliver.topic": "orders", "redeliver.vhost": "shop",
	}
	for name, more := range map[string]map[string]string{
		"redeliver.acked":                    nil,
		"redeliver.health":                   nil,
		"messaging.client.consumed.messages": {"messaging.operation.name": "consume"},
	} {
		want := maps.Clone(queue)
		maps.Copy(want, more)
		if got := texts(points(w.metric(name))[0].Attributes.ToSlice()); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	failures := make(map[string]int64)
	for _, p := range points(w.metric("redeliver.set_aside_failed")) {
		failures[texts(p.Attributes.ToSlice())["redeliver.target"]] = p.Value
	}
	if !maps.Equal(failures, map[string]int64{"orders-dlq": 2, "orders-parked": 3}) {
		t.Errorf("set_aside_failed: %v", failures)
	}
}

// Consumers of one queue are one series, which goes on when one of them ends and another one begins.
func TestCountersOutliveConsumers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	check := func(when string, acked, held int64) {
		t.Helper()
		if gotAcked, gotHeld := w.value("redeliver.acked"), w.value("redeliver.held"); gotAcked != acked || gotHeld != held {
			t.Errorf("%s: acked %d, held %d, want %d and %d", when, gotAcked, gotHeld, acked, held)
		}
	}
	a := w.watch("orders", redeliver.Stats{Acked: 5, Held: 1})
	b := w.watch("orders", redeliver.Stats{Acked: 2, Held: 2})
	check("two", 7, 3)
	a.stats.Store(&redeliver.Stats{Acked: 6, Held: 0}) // its shutdown, after the last collection
	a.Close()
	a.Close()
	check("one left", 8, 2)
	b.Close()
	check("none left", 8, -1)
	w.watch("orders", redeliver.Stats{Acked: 1})
	check("a new one", 9, 0)
	w.watch("invoices", redeliver.Stats{Acked: 100})
	if list := points(w.metric("redeliver.acked")); len(list) != 2 {
		t.Errorf("two queues: %+v", list)
	}
}

func TestHealthGauge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.watch("orders", redeliver.Stats{}), w.watch("orders", redeliver.Stats{})
	for _, tt := range []struct {
		a, b redeliver.HealthStatus
		want int64
	}{
		{redeliver.HealthOK, redeliver.HealthOK, 0},
		{redeliver.HealthDegraded, redeliver.HealthOK, 1},
		{redeliver.HealthDegraded, redeliver.HealthDown, 2},
	} {
		a.health.Store(&redeliver.Health{Status: tt.a})
		b.health.Store(&redeliver.Health{Status: tt.b})
		if got := w.value("redeliver.health"); got != tt.want {
			t.Errorf("%s and %s: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.watch("orders", redeliver.Stats{})
	answers := []redeliver.Outcome{
		redeliver.Ack(), redeliver.Ack(), redeliver.Defer(), redeliver.Retry(errBoom), redeliver.Retry(errBoom), redeliver.Retry(nil),
		redeliver.Park(&redeliver.DecodeError{Err: errBoom}),
		{},
	}
	for _, o := range answers {
		c.handle(&redeliver.Message{}, func(context.Context) redeliver.Outcome { return o })
	}
	data, _ := w.metric("messaging.process.duration").Data.(metricdata.Histogram[float64])
	counts := make(map[string]uint64)
	for _, p := range data.DataPoints {
		got := texts(p.Attributes.ToSlice())
		counts[got["redeliver.outcome"]+" "+got["error.type"]] = p.Count
		if got["messaging.operation.name"] != "process" || got["messaging.operation.type"] != "process" || got["messaging.destination.name"] != "orders" ||
			got["messaging.system"] != "rabbitmq" || p.Bounds[0] != 0.005 || len(p.Bounds) != 14 || p.Sum != took.Seconds()*float64(p.Count) {
			t.Errorf("%v: %+v", got, p)
		}
	}
	want := map[string]uint64{
		"ack ": 2, "defer ": 1, "retry *errors.errorString": 2, "retry _OTHER": 1, "park *redeliver.DecodeError": 1, "none _OTHER": 1,
	}
	if !maps.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
}

// Metrics alone work, and neither is needed.
func TestHalves(t *testing.T) {
	t.Parallel()
	msg := &redeliver.Message{Headers: map[string]any{"traceparent": parent}}
	for name, change := range map[string]func(*redeliverotel.Config){
		"metrics": func(c *redeliverotel.Config) { c.TracerProvider = nil },
		"traces":  func(c *redeliverotel.Config) { c.MeterProvider = nil },
		"nothing": func(c *redeliverotel.Config) { c.MeterProvider, c.TracerProvider = nil, nil },
	} {
		w := newWorld(t, change)
		c := w.watch("orders", redeliver.Stats{Acked: 1})
		c.handle(msg, func(ctx context.Context) redeliver.Outcome {
			headers := map[string]any{"traceparent": parent}
			c.Copy(ctx, "orders-dlq", headers)
			if (headers["traceparent"] != parent) != (name == "traces") {
				t.Errorf("%s: the copy has %v", name, headers)
			}
			return redeliver.Retry(errBoom)
		})
		c.Close()
		if acked := w.value("redeliver.acked"); (acked == 1) != (name == "metrics") {
			t.Errorf("%s: acked %d", name, acked)
		}
		if spans := len(w.spans.Ended()); (spans == 1) != (name == "traces") {
			t.Errorf("%s: %d spans", name, spans)
		}
	}
}

// Collections, messages, and consumers that come and go get on together: for the race detector.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				c := w.watch("orders", redeliver.Stats{Acked: 1})
				c.handle(&redeliver.Message{ID: "m"}, func(context.Context) redeliver.Outcome { return redeliver.Retry(errBoom) })
				w.collect()
				c.Close()
			}
		})
	}
	wg.Wait()
	if got := w.value("redeliver.acked"); got != 200 {
		t.Errorf("acked %d, want 200", got)
	}
}
