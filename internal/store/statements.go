package store

import (
	"embed"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"strings"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// statements holds the text of every statement of sql/*.sql under its name. It
// is filled once at start and never changed.
var statements = mustLoad(statementFiles)

func mustLoad(files fs.FS) statementTexts {
	var s statementTexts
	if err := loadStatements(files, &s); err != nil {
		panic("store: " + err.Error()) // the files are part of the program; a test loads them
	}
	return s
}

var statementName = regexp.MustCompile(`(?m)^-- name: (\w+) :(one|many|exec|list)\n`)

// loadStatements fills the fields of a struct of strings: each statement has a
// field, each field a statement.
func loadStatements(files fs.FS, into any) error {
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		return err
	}
	target := reflect.ValueOf(into).Elem()
	for _, file := range names {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		marks := statementName.FindAllSubmatchIndex(text, -1)
		for i, m := range marks {
			end := len(text)
			if i+1 < len(marks) {
				end = marks[i+1][0]
			}
			name, sql := string(text[m[2]:m[3]]), strings.TrimSpace(string(text[m[1]:end]))
			field := target.FieldByName(name)
			if !field.IsValid() {
				return fmt.Errorf("%s: nothing uses the statement %s", file, name)
			}
			if field.String() != "" {
				return fmt.Errorf("%s: there are two statements %s", file, name)
			}
			field.SetString(strings.TrimSuffix(sql, ";"))
		}
	}
	for i := range target.NumField() {
		if target.Field(i).String() == "" {
			return fmt.Errorf("there is no statement %s", target.Type().Field(i).Name)
		}
	}
	return nil
}
