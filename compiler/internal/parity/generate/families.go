package generate

import (
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

// family is a way to make models. Families that start from models of a corpus set fromCorpus.
type family struct {
	name       string
	model      func(seed uint64) parity.Case
	fromCorpus func(corpus []parity.Case) func(seed uint64) parity.Case
}

var families = []family{
	{name: "careful", model: Case},
	{name: "feeds", model: Feeds},
	{name: "heirs", model: Heirs},
	{name: "wild", model: Wild},
	{name: "places", model: Places},
	{name: "turns", model: Turns},
	{name: "crosses", fromCorpus: Crosses},
	{name: "mutants", fromCorpus: Mutants},
}

// Families lists the names of all families of models.
func Families() []string {
	var names []string
	for _, k := range families {
		names = append(names, k.name)
	}
	return names
}

// Family returns the function that makes models of a family. The same seed and corpus always make the same model.
func Family(name string, corpus []parity.Case) (func(seed uint64) parity.Case, error) {
	i := slices.IndexFunc(families, func(k family) bool { return k.name == name })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%q is none of the families of models %s", name, strings.Join(Families(), ", "))
	case families[i].fromCorpus != nil:
		return families[i].fromCorpus(corpus), nil
	}
	return families[i].model, nil
}
