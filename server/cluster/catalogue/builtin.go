package catalogue

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// Pool is the provider type of machines that exist already. They are lent to nodes, so hardware and image types need
// no mapping for it.
const Pool = "pool"

//go:embed builtin/*/*.json optional/*/*.json
var pluginFiles embed.FS

// BuiltIn returns the plug-in types that every catalogue has. They are not changed by anybody.
func BuiltIn() []*PluginType { return builtIn() }

var builtIn = sync.OnceValue(func() (out []*PluginType) {
	eachPlugin("builtin", func(kind Kind, name string, text []byte) {
		e, err := Decode(kind, text)
		if err != nil {
			panic(fmt.Sprintf("catalogue: the built-in %s %s: %s", kind, name, err)) // a test loads them
		}
		out = append(out, e.(*PluginType))
	})
	return out
})

// Source returns the JSON of a built-in plug-in type, or nil.
func Source(kind Kind, name string) []byte {
	text, _ := pluginFiles.ReadFile(path.Join("builtin", string(kind), name+".json"))
	return text
}

// Optional returns the JSON of plug-in types that this program describes and does not carry out, by kind and name:
// administrators import them where a provisioner has a program for them.
func Optional() map[Kind]map[string][]byte {
	out := map[Kind]map[string][]byte{}
	eachPlugin("optional", func(kind Kind, name string, text []byte) {
		if out[kind] == nil {
			out[kind] = map[string][]byte{}
		}
		out[kind][name] = text
	})
	return out
}

func eachPlugin(folder string, f func(kind Kind, name string, text []byte)) {
	files, err := fs.Glob(pluginFiles, folder+"/*/*.json")
	if err != nil {
		panic("catalogue: " + err.Error()) // the pattern is part of the program
	}
	for _, file := range files {
		text, err := pluginFiles.ReadFile(file)
		if err != nil {
			panic("catalogue: " + err.Error()) // the files are part of the program
		}
		f(Kind(path.Base(path.Dir(file))), strings.TrimSuffix(path.Base(file), ".json"), text)
	}
}
