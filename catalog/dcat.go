package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

func readDCAT(r map[string]any, c Choice) (d sqsfifo.Dataset, err error) {
	graph := list(r["@graph"])
	if graph == nil {
		graph = []any{r}
	}
	var dataset map[string]any
	for _, n := range graph {
		node, _ := n.(map[string]any)
		for _, class := range append(list(node["@type"]), list(node["type"])...) {
			if local(text(class)) != "Dataset" {
				continue
			}
			if dataset != nil {
				return d, wrong("@graph", "two datasets; give one")
			}
			dataset = node
		}
	}
	if dataset == nil {
		return d, wrong("type", "neither a STAC Feature or Collection nor a node of the @type dcat:Dataset")
	}
	if d.ID = value(dataset, "identifier"); d.ID == "" {
		d.ID = text(dataset["@id"])
	}
	if d.ID == "" {
		return d, wrong("dcterms:identifier", "missing, and so is the @id; it is the dataset_id")
	}
	if d.Version, err = version(c, "dcat:version", value(dataset, "version"), value(dataset, "versionInfo")); err != nil {
		return d, err
	}
	chosen, err := distribution(dataset, graph, c.Asset)
	if err != nil {
		return d, err
	}
	href := value(chosen, "downloadURL")
	if href == "" {
		href = value(chosen, "accessURL")
	}
	if d.SourceURI, err = address("dcat:downloadURL", href, c.Base); err != nil {
		return d, err
	}
	if sum, _ := member(chosen, "checksum").(map[string]any); sum != nil {
		algorithm := strings.ToLower(strings.TrimPrefix(local(value(sum, "algorithm")), "checksumAlgorithm_"))
		if d.ArtifactChecksum = algorithm + ":" + strings.ToLower(value(sum, "checksumValue")); strings.HasPrefix(d.ArtifactChecksum, ":") || strings.HasSuffix(d.ArtifactChecksum, ":") {
			return d, wrong("spdx:checksum", "lacks spdx:algorithm or spdx:checksumValue")
		}
	}
	return d, nil
}

// distribution returns the distribution with a name, or the only one.
func distribution(dataset map[string]any, graph []any, want string) (map[string]any, error) {
	byName, first := map[string]map[string]any{}, []string{}
	for i, v := range list(member(dataset, "distribution")) {
		node, _ := v.(map[string]any)
		// A distribution elsewhere in the graph is named by its @id.
		for _, n := range graph {
			if other, _ := n.(map[string]any); len(node) == 1 && node["@id"] != nil && other["@id"] == node["@id"] {
				node = other
			}
		}
		names := []string{value(node, "identifier"), value(node, "title"), text(node["@id"]), fmt.Sprintf("#%d", i+1)}
		names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
		first = append(first, names[0])
		for _, name := range names {
			byName[name] = node
		}
	}
	if node := byName[want]; node != nil {
		return node, nil
	}
	name, err := one("dcat:distribution", first, want)
	return byName[name], err
}

// local returns the local name of a prefixed name or an IRI.
func local(name string) string { return name[strings.LastIndexAny(name, ":/#")+1:] }

// member returns the member with a local name.
func member(node map[string]any, name string) any {
	for _, n := range slices.Sorted(maps.Keys(node)) {
		if local(n) == name {
			return node[n]
		}
	}
	return nil
}

// value returns the text of the member with a local name: a string, an IRI or the first of
// several.
func value(node map[string]any, name string) string {
	for _, v := range list(member(node, name)) {
		if o, ok := v.(map[string]any); ok {
			if v = o["@value"]; v == nil {
				v = o["@id"]
			}
		}
		if s := text(v); s != "" {
			return s
		}
	}
	return ""
}
