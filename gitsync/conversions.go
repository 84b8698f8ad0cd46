package gitsync

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// conversionsFile lists, in the .git folder of a checkout, the files that were not
// written as they are in the commit, and how they were converted. The index of git does
// not tell that; but when .gitattributes changes, files that did not change otherwise
// have to be written again.
const conversionsFile = "ordain-conversions"

// unfit marks a file whose content does not fit its encoding.
const unfit = "!"

// conversions returns the content of the list: conversion and path of each file, ended by zero bytes.
func (w *worktree) conversions() []byte {
	var out bytes.Buffer
	for _, f := range w.content.files {
		if f.conversion == (conversion{}) {
			continue
		}
		out.WriteString(f.conversion.String())
		if _, is := w.unencoded.Load(f.path); is {
			out.WriteString(unfit)
		}
		out.WriteString("\x00" + f.path + "\x00")
	}
	return out.Bytes()
}

// readConversions reads the list, by path. Without a list, no file was converted.
func readConversions(dir string) map[string]string {
	text, err := os.ReadFile(filepath.Join(dir, ".git", conversionsFile))
	if err != nil {
		return nil
	}
	list := map[string]string{}
	fields := strings.Split(string(text), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		list[fields[i+1]] = fields[i]
	}
	return list
}

// sameConversion reports whether the last checkout converted a file as this one would.
func (w *worktree) sameConversion(f file) bool {
	before, failed := strings.CutSuffix(w.converted[f.path], unfit)
	if before != f.conversion.String() {
		return false
	}
	if failed { // it was said then, and is said again
		w.unencoded.Store(f.path, f.conversion.unfit())
	}
	return true
}

// convert returns the content of a file as it is written to the disk.
func (w *worktree) convert(f file) ([]byte, error) {
	m := w.m
	if f.from != nil {
		m = f.from
	}
	text, err := m.read(f.hash, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	text, fits := f.conversion.apply(text, f.hash.String())
	if !fits {
		w.unencoded.Store(f.path, f.conversion.unfit())
	}
	return text, nil
}
