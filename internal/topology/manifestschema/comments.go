package manifestschema

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// readComments returns the doc comments of the types in a directory of Go
// source, by "Type", and of their fields, by "Type.Field", each as one line.
// Fields that are declared without a line of their own between them and a
// comment share it.
func readComments(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("comments of %s: %w", dir, err)
	}
	comments := map[string]string{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("comments of %s: %w", dir, err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("comments of %s: %w", dir, err)
		}
		for _, decl := range file.Decls {
			if general, ok := decl.(*ast.GenDecl); ok && general.Tok == token.TYPE {
				typeComments(general, comments)
			}
		}
	}
	return comments, nil
}

func typeComments(decl *ast.GenDecl, comments map[string]string) {
	for _, spec := range decl.Specs {
		named := spec.(*ast.TypeSpec)
		comments[named.Name.Name] = oneLine(decl.Doc.Text())
		structure, ok := named.Type.(*ast.StructType)
		if !ok {
			continue
		}
		last := ""
		for _, field := range structure.Fields.List {
			if field.Doc != nil {
				last = oneLine(field.Doc.Text())
			}
			for _, name := range field.Names {
				comments[named.Name.Name+"."+name.Name] = last
			}
		}
	}
}

// oneLine joins the lines of a comment and takes the brackets off the names that Go's documentation links.
func oneLine(comment string) string {
	return strings.NewReplacer("[", "", "]", "").Replace(strings.Join(strings.Fields(comment), " "))
}
