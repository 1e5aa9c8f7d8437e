package command

import (
	"bytes"
	"context"
	"fmt"

	"github.com/goccy/go-graphviz"
)

// renderSVG lays a picture out and draws it.
func renderSVG(ctx context.Context, dot string) (svg string, err error) {
	g, err := graphviz.New(ctx)
	if err != nil {
		return "", fmt.Errorf("starting Graphviz: %w", err)
	}
	defer g.Close()
	picture, err := graphviz.ParseBytes([]byte(dot))
	if err != nil {
		return "", fmt.Errorf("reading the picture: %w", err)
	}
	defer picture.Close()
	var out bytes.Buffer
	if err := g.Render(ctx, picture, graphviz.SVG, &out); err != nil {
		return "", fmt.Errorf("drawing the picture: %w", err)
	}
	return out.String(), nil
}
