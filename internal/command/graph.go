package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// The languages that a picture is written in.
const (
	formatMermaid = "mermaid"
	formatDOT     = "dot"
	formatSVG     = "svg"
)

var graphFormats = []string{formatMermaid, formatDOT, formatSVG}

func (a *app) graphCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "graph MANIFEST...", Short: "Draw topics: Mermaid, DOT or SVG",
		Long: `Graph draws what manifests describe, without a broker: exchanges, queues with their arguments and delays, the ways that messages take,
and the permissions that publishers and consumers need. Several manifests make one picture.

Mermaid is what Markdown pages show, DOT is the language of Graphviz, and SVG is drawn here, without a program to install.`,
		Example: `  redeliver graph orders.json
  redeliver graph --format svg orders.json >orders.svg`,
		Args: manifestArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(graphFormats, format) {
				return usagef("--format %q is none of %s", format, strings.Join(graphFormats, ", "))
			}
			manifests, err := a.manifests(cmd.Context(), args)
			if err != nil {
				return err
			}
			picture, err := Draw(cmd.Context(), topology.Draw(manifests...), format)
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(map[string]string{"format": format, "graph": picture})
			}
			a.printf("%s", picture)
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", formatMermaid, strings.Join(graphFormats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(graphFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Draw writes a picture in one of the formats mermaid, dot and svg.
func Draw(ctx context.Context, g *topology.Graph, format string) (string, error) {
	switch format {
	case formatDOT:
		return g.DOT(), nil
	case formatSVG:
		return renderSVG(ctx, g.DOT())
	}
	return g.Mermaid(), nil
}
