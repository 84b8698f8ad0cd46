package store

import (
	"embed"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// statements holds the text of every statement in sql/*.sql under its name. The first Open fills it, because most
// commands need no database.
var statements statementTexts

var fillStatements = sync.OnceFunc(func() {
	if err := loadStatements(statementFiles, &statements); err != nil {
		panic("store: " + err.Error()) // the files are part of the program, and a test loads them
	}
})

// statementKinds are the kinds that a header `-- name: Name :kind` may give a statement.
var statementKinds = []string{"one", "many", "exec", "list"}

// loadStatements fills the fields of a struct of strings: each statement has a field, and each field a statement.
func loadStatements(files fs.FS, into any) error {
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		return err
	}
	target := reflect.ValueOf(into).Elem()
	places := make(map[string]int, target.NumField())
	for i := range target.NumField() {
		places[target.Type().Field(i).Name] = i
	}
	for _, file := range names {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		for _, statement := range strings.Split("\n"+string(text), "\n-- name: ")[1:] {
			head, sql, _ := strings.Cut(statement, "\n")
			name, kind, _ := strings.Cut(head, " :")
			if !slices.Contains(statementKinds, kind) {
				return fmt.Errorf("%s: the kind in %q is none of %v", file, head, statementKinds)
			}
			place, used := places[name]
			if !used {
				return fmt.Errorf("%s: nothing uses the statement %s", file, name)
			}
			if target.Field(place).String() != "" {
				return fmt.Errorf("%s: there are two statements %s", file, name)
			}
			target.Field(place).SetString(strings.TrimSuffix(strings.TrimSpace(sql), ";"))
		}
	}
	for i := range target.NumField() {
		if target.Field(i).String() == "" {
			return fmt.Errorf("there is no statement %s", target.Type().Field(i).Name)
		}
	}
	return nil
}
