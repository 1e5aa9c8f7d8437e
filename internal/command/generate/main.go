// Command generate writes the pages and the manual pages of the command, one for each of its commands.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/redeliver/terraform-provider-redeliver/internal/command"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func main() {
	markdown := flag.String("markdown", "", "the directory of the pages")
	man := flag.String("man", "", "the directory of the manual pages")
	flag.Parse()
	if err := generate(*markdown, *man); err != nil {
		log.Fatal(err)
	}
}

// picture adds to the page of the graph what it draws.
func picture(page string) error {
	id := topology.Identity{Topic: "orders", VHost: "shop"}
	spec := topology.Spec{
		Identity: id, DeadLetterQueue: id.DeadLetterQueueName(), ParkedQueue: id.ParkedQueueName(), Park: topology.ParkPublish,
		HoldDelays: []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute},
		Retry:      topology.RetryPolicy{Strategy: topology.Hybrid, MaxRetries: topology.DefaultMaxRetries, Jitter: topology.DefaultJitter},
		Bindings:   []topology.Binding{{Source: "shop.events", RoutingKey: "order.*"}},
	}
	m, err := spec.Manifest()
	if err != nil {
		return err
	}
	svg, err := command.Draw(context.Background(), topology.Draw(m), "svg")
	if err != nil {
		return err
	}
	if err := os.WriteFile(page+".svg", []byte(svg), 0o644); err != nil {
		return err
	}
	text, err := os.ReadFile(page + ".md")
	if err != nil {
		return err
	}
	text = append(text, "\n### What it draws\n\nA topic of the `hybrid` strategy, as SVG:\n\n![the topology of a topic](redeliver_graph.svg)\n"...)
	return os.WriteFile(page+".md", text, 0o644)
}

func generate(markdown, man string) error {
	root := command.Root()
	root.InitDefaultCompletionCmd()
	// Pages of commands that are there no more go away.
	for _, dir := range []string{markdown, man} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// Where a page has a title, the registry's menu shows it.
	title := func(file string) string {
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".md"), "_", " ")
		return "---\npage_title: \"" + name + "\"\n---\n\n"
	}
	link := func(name string) string { return name }
	if err := doc.GenMarkdownTreeCustom(root, markdown, title, link); err != nil {
		return err
	}
	if err := picture(filepath.Join(markdown, "redeliver_graph")); err != nil {
		return err
	}
	// A date of its own would change the pages every day.
	date := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	return doc.GenManTree(root, &doc.GenManHeader{Title: "REDELIVER", Section: "1", Source: "redeliver", Manual: "redeliver", Date: &date}, man)
}
