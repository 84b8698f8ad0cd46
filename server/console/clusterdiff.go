package console

import (
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/linediff"
	"ordain.dev/ordain/server/cluster/manifest"
)

// manifestDiff compares manifests as the files that they are; nil is no file.
func manifestDiff(from, to *manifest.Manifest) (*linediff.Diff, error) {
	var texts [2]string
	for i, m := range []*manifest.Manifest{from, to} {
		if m == nil {
			continue
		}
		text, err := manifest.Write(m)
		if err != nil {
			return nil, fault.Wrap("console.cluster", fault.Internal, err)
		}
		texts[i] = string(text)
	}
	return linediff.Compare(texts[0], texts[1]), nil
}
