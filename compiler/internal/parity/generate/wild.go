package generate

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"ordain.dev/ordain/compiler/internal/parity"
)

// Wild makes a small model in which a few statements mix all features of the language:
// any expression for any attribute, in a constructor, a loop, a condition, an
// implementation or an argument of a plug-in. Half of the expressions have the expected
// type. Case aims at models that compile, and Feeds at the freezing of lists; Wild aims
// at nothing, and so finds how features interact.
func Wild(seed uint64) parity.Case {
	w := wild{generator: &generator{Rand: rand.New(rand.NewPCG(seed, 55))}}
	files := w.project()
	return parity.Case{Area: "wild", Name: fmt.Sprint(seed), Files: files}
}

// wild writes statements for one place. objects are the expressions for instances of Base
// there.
type wild struct {
	*generator
	objects []string
	loops   []string
	plugins bool
	calm    bool   // types fit, and nothing is read that is likely to be unset
	inside  bool   // in an implementation of Base, which must construct no Base, because that would not end
	inWhen  bool   // in the condition of an implement, where the reference cannot always construct
	owner   string // the multiplicity of owners
}

func (w wild) project() map[string]string {
	w.plugins, w.owner = w.chance(60), pick(w.generator, []string{"0:1", "1", "1", "0:"})
	w.calm = w.chance(70)
	inside := w
	inside.inside = true
	inside.objects, w.objects = []string{"self", "self", "b2"}, []string{"b1", "b1", "b2", "s1"}
	if !w.calm {
		inside.objects, w.objects = append(inside.objects,
			"self.next"), append(w.objects, "b1.next", "b1.prev", "s1.base")
	}
	files := map[string]string{}
	imports := ""
	if w.plugins {
		imports = "import p\n"
		files["libs/p/module.yml"] = moduleFile("p")
		files["libs/p/model/_init.cf"] = "\n"
		files["libs/p/plugins/__init__.py"] = library
	}
	on := func(percent int, text string) string {
		if w.chance(percent) {
			return text
		}
		return ""
	}
	constants := []string{
		"n = 3", `t = "text"`, "l = [1, 2, 3]", `d = {"a": 1, "b": "x", "c": null, "d": [1], "e": {"f": 2}}`,
		"nothing = null", `d2 = {"name": "other", "nums": [5]}`,
	}
	home := append(w.schema(inside),
		"b1 = Base(key=1"+on(40, ", next=b2")+on(30, `, note="first"`)+")",
		"b2 = Base(key=2"+on(30, ", **d2")+")",
		"s1 = Sub(key=3"+on(50, ", base=b1")+")",
		`o1 = Other(id="o1"`+on(30+strings.Count("1", w.owner)*70, ", owner=b2")+")")
	home = append(home, constants...)
	var statements []string
	for range 1 + w.IntN(4) {
		statements = append(statements, w.statement(0))
	}
	shuffled := func(imports string, parts []string) string {
		w.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return imports + strings.Join(parts, "\n") + "\n"
	}
	if w.chance(70) {
		files["main.cf"] = shuffled(imports, append(home, statements...))
		return files
	}
	files["libs/m/module.yml"] = moduleFile("m")
	files["libs/m/model/_init.cf"] = shuffled(imports, home)
	for i, text := range statements {
		statements[i] = w.qualified(text)
	}
	for _, name := range []string{"b1", "b2", "s1", "o1"} {
		statements = append(statements, name+" = m::"+name)
	}
	files["main.cf"] = shuffled("import m\n"+imports, append(statements, constants...))
	return files
}

var entityOrText = regexp.MustCompile(`"(?:\\.|[^"\\])*"|\b(?:Base|Sub|Other)\b`)

// qualified prefixes most entities of a statement, as another place has to. Those that it
// leaves are resolved through the type of a relation.
func (w wild) qualified(statement string) string {
	return entityOrText.ReplaceAllStringFunc(statement, func(name string) string {
		if strings.HasPrefix(name, `"`) || w.chance(8) {
			return name
		}
		return "m::" + name
	})
}

// schema returns the definitions that the statements use, different each time.
func (w wild) schema(inside wild) []string {
	bounds := func(of ...string) string {
		if w.calm {
			return "[0:]"
		}
		return "[" + pick(w.generator, of) + "]"
	}
	owner := "[" + w.owner + "]"
	indexes := []string{"", "index Other(id)"}
	if owner == "[1]" {
		indexes = []string{"index Other(owner, id)", "index Other(id, owner)"}
	}
	parts := []string{
		"typedef small as int matching " + pick(w.generator,
			[]string{"self < 10", "self > 0 and self < 100", "self in [1, 2, 3]"}),
		"typedef word as string matching /^[a-z]+$/",
		`entity Base:
    int key
    string name = "base"
    string? note = null
    int[] nums = [1, 2]
    dict opts = {"a": 1}
    small level = 1
    float? share = ` + pick(w.generator, []string{"null", "1.5"}) + `
    bool on = true
end`,
		"entity Sub extends Base:\n    string name = " + pick(w.generator,
			[]string{`"sub"`, w.undefined(`"sub"`)}) + "\n    word[] words = [\"a\"]\nend",
		"entity Other:\n    string id\n    int? size = " + pick(w.generator,
			[]string{"null", "2", w.undefined("3")}) + "\nend",
		"Base.subs " + bounds("0:", "0:", "0:", "0:", "1:", "0:2") + " -- Base.base " + bounds("0:1", "0:"),
		"Base.next [0:1] -- Base.prev " + bounds("0:1", "0:"),
		"Base.others " + bounds("0:", "0:", "0:", "0:", "0:1", "1") + " -- Other.owner " + owner,
		"Other.likes " + bounds("0:", "0:", "1:", "0:1") + " -- Base",
		pick(
			w.generator,
			[]string{
				"index Base(key)",
				"index Base(key)",
				"index Base(key)",
				"index Base(key)",
				"index Base(key, name)",
				"",
			},
		),
		pick(w.generator, indexes),
		"implementation base for Base:\n" + indent(inside.block(0)) + "\nend",
		"implementation sub for Sub:\n" + indent(inside.block(1)) + "\nend",
		"implementation none for std::Entity:\nend",
		"implement Base using base" + w.when(inside),
		"implement Base using none",
		"implement Other using none",
		pick(
			w.generator,
			[]string{
				"implement Sub using parents",
				"implement Sub using sub, parents",
				"implement Sub using sub" + w.when(inside) + "\nimplement Sub using none",
				"implement Sub using none",
			},
		),
	}
	return parts
}

// undefined sometimes returns no default.
func (w wild) undefined(def string) string {
	if w.calm {
		return def
	}
	return "undef"
}

func (w wild) when(inside wild) string {
	if w.chance(60) {
		return ""
	}
	inside.plugins, inside.inWhen = false, true
	return " when " + inside.expression("bool", 2)
}

// block returns the body of a statement, with assignments.
func (w wild) block(depth int) []string {
	var lines []string
	for range 1 + w.IntN(2) {
		lines = append(lines, strings.Split(w.statement(depth), "\n")...)
	}
	return lines
}

func (w wild) object() string {
	if len(w.loops) > 0 && w.chance(30) {
		return pick(w.generator, w.loops)
	}
	return pick(w.generator, w.objects)
}

var wildAttributes = []struct{ name, typ string }{
	{
		"key",
		"int",
	}, {"name", "string"}, {"note", "string?"}, {"nums", "int[]"}, {"opts", "dict"}, {"level", "int"},
	{"share", "float?"}, {"on", "bool"},
	{
		"subs",
		"Base[]",
	}, {"next", "Base"}, {"prev", "Base"}, {"others", "Other[]"}, {"base", "Base"}, {"words", "string[]"},
	{"requires", "any[]"}, {"provides", "any[]"},
}

func (w wild) statement(depth int) string {
	within := func() string { return indent(w.block(depth + 1)) }
	switch n := w.IntN(100); {
	case depth < 2 && n < 14:
		name := fmt.Sprint("e", depth)
		typ := pick(w.generator, []string{"int[]", "Base[]", "Base[]", "Base[]", "Other[]", "string[]"})
		of := w.expression(typ, 2)
		if typ == "Base[]" || !w.calm {
			w.loops = append(w.loops[:len(w.loops):len(w.loops)], name)
		}
		return "for " + name + " in " + of + ":\n" + within() + "\nend"
	case depth < 2 && n < 30:
		text := "if " + w.expression("bool", 2) + ":\n" + within()
		if w.chance(20) {
			text += "\nelif " + w.expression("bool", 2) + ":\n" + within()
		}
		if w.chance(40) {
			text += "\nelse:\n" + within()
		}
		return text + "\nend"
	case n < 60:
		return w.assignment()
	case n < 66:
		return "o1." + pick(
			w.generator,
			[]string{
				"likes += " + w.expression("Base[]", 2),
				"likes += " + w.expression("Base[]", 2),
				"likes = " + w.expression("Base[]", 2),
			},
		)
	case n < 80:
		return w.fresh("v") + " = " + w.expression(pick(w.generator, wildTypes), 3)
	case n < 90:
		return w.constructor()
	case w.plugins:
		return w.call("any", 2)
	}
	return w.constructor()
}

// assignment adds to a relation. In a model that is not calm, it may also set an attribute,
// or a relation with room for one value.
func (w wild) assignment() string {
	if w.calm {
		relation := pick(w.generator, []string{"subs", "subs", "requires", "provides", "base", "prev", "others"})
		of := "Base[]"
		if relation == "others" && w.owner != "1" {
			of = "Other[]"
		} else if relation == "others" {
			relation = "subs"
		}
		return w.object() + "." + relation + pick(w.generator, []string{" = ", " += "}) + w.expression(of, 3)
	}
	a := pick(w.generator, wildAttributes)
	of, with := w.object(), " = "
	if strings.HasSuffix(a.typ, "[]") {
		with = pick(w.generator, []string{" = ", " = ", " += "})
	}
	if a.name == "words" {
		of = "s1"
	}
	return of + "." + a.name + with + w.expression(a.typ, 3)
}

var wildTypes = []string{
	"int",
	"float",
	"string",
	"string?",
	"bool",
	"int[]",
	"string[]",
	"dict",
	"Base",
	"Base[]",
	"Other",
	"Other[]",
}

// expression makes an expression that mostly has the given type.
func (w wild) expression(typ string, depth int) string {
	if !w.calm && w.chance(4) {
		typ = pick(w.generator, wildTypes)
	}
	sub := func(t string) string { return w.expression(t, depth-1) }
	if depth <= 0 {
		return w.leaf(typ)
	}
	switch n := w.IntN(100); {
	case n < 8:
		return "(" + sub("bool") + " ? " + sub(typ) + " : " + sub(typ) + ")"
	case n < 20 && w.plugins:
		return w.call(typ, depth)
	case n < 24:
		return w.lookup(typ)
	case n < 28 && len(w.loops) > 0 && !w.calm:
		return pick(w.generator, w.loops)
	case n < 55:
		return w.leaf(typ)
	}
	f := func(format string, of ...string) string {
		args := make([]any, len(of))
		for i, t := range of {
			args[i] = sub(t)
		}
		return fmt.Sprintf(format, args...)
	}
	list := func(of string) string {
		switch w.IntN(6) {
		case 0:
			return "[]"
		case 1:
			return f("[%s]", of)
		case 2:
			return f("[%s, %s]", of, of+"[]")
		case 3:
			inner := w
			inner.loops = append(w.loops[:len(w.loops):len(w.loops)], "q")
			from := pick(w.generator, []string{of + "[]", "int[]", "Base[]"})
			guard := ""
			if w.chance(40) {
				guard = " if " + inner.expression("bool", depth-1)
			}
			body := inner.expression(of, depth-1)
			if w.chance(50) {
				body = "q"
			}
			return "[" + body + " for q in " + sub(from) + guard + "]"
		}
		return f("[%s, %s]", of, of)
	}
	switch typ {
	case "int":
		return w.arithmetic(sub)
	case "float", "float?":
		return pick(
			w.generator,
			[]string{
				f("(%s / %s)", "int", "int"),
				f("float(%s)", "int"),
				f("(%s + 0.5)", "float"),
				f("number(%s)", "int"),
			},
		)
	case "string", "string?":
		return pick(
			w.generator,
			[]string{
				f("(%s + %s)", "string", "string"),
				f("string(%s)", pick(w.generator, wildTypes[:8])),
				w.text(),
				w.text(),
			},
		)
	case "bool":
		return w.condition(f)
	case "int[]":
		return list("int")
	case "string[]":
		return list("string")
	case "Base[]", "any[]":
		return list("Base")
	case "Other[]":
		return list("Other")
	case "dict":
		return w.dict(depth)
	case "Base":
		if w.calm && w.chance(40) {
			return pick(w.generator, []string{"Base[key=1]", "Base[key=2]", f("Base[key=%s]", "int")})
		}
		if w.chance(40) {
			return pick(
				w.generator,
				[]string{
					f("Base[key=%s]", "int"),
					f("Base[key=%s]", "int"),
					f("Base[name=%s, key=%s]", "string", "int"),
				},
			)
		}
		if w.inside {
			return w.leaf(typ)
		}
		return w.constructor()
	case "Other":
		if w.chance(50) {
			return pick(
				w.generator,
				[]string{
					f("Other[id=%s]", "string"),
					f("Other[owner=%s, id=%s]", "Base", "string"),
					w.object() + f(".others[id=%s]", "string"),
				},
			)
		}
		if w.inWhen {
			return w.leaf(typ)
		}
		return w.other()
	}
	return w.leaf(typ)
}

// lookup reads a value of the type from a dict, if there is one.
func (w wild) lookup(typ string) string {
	key := map[string]string{"int": "a", "string": "b", "string?": "c", "float?": "c", "int[]": "d", "dict": "e"}[typ]
	if key == "" && w.calm {
		return w.leaf(typ)
	}
	if key == "" || (!w.calm && w.chance(5)) {
		key = pick(w.generator, []string{"a", "b", "c", "d", "e", "z"})
	}
	if key == "a" && w.chance(50) {
		return w.object() + `.opts["a"]`
	}
	return `d["` + key + `"]`
}

func (w wild) arithmetic(sub func(string) string) string {
	if w.chance(15) {
		return "int(" + sub(pick(w.generator, []string{"float", "bool", "string", "int"})) + ")"
	}
	return "(" + sub("int") + pick(w.generator, []string{" + ", " - ", " * ", " + "}) + sub("int") + ")"
}

func (w wild) condition(f func(format string, of ...string) string) string {
	any := pick(w.generator, wildTypes)
	a := pick(w.generator, wildAttributes).name
	attribute := w.object() + "." + a
	if a == "words" {
		attribute = "s1." + a
	}
	return pick(w.generator, []string{
		f("(%s and %s)", "bool",
			"bool"), f("(%s or %s)", "bool", "bool"), f("(not %s)", "bool"), f("(%s < %s)", "int", "int"),
		f("(%s >= %s)", "float", "int"),
		f("(%s == %s)", any,
			any), f("(%s != %s)", any, any), f("(%s in %s)", "int", "int[]"), f("(%s not in %s)", "Base", "Base[]"),
		f("(%s in %s)", "string", "dict"),
		"(" + attribute + " is defined)", "(" + attribute + " is defined)",
		`(d["` + pick(w.generator, []string{"a", "c", "z"}) + `"] is defined)`, f("(%s == null)", any),
		f("bool(%s)", any),
	})
}

func (w wild) text() string {
	names := []string{
		"n",
		"t",
		"l",
		"d",
		"nothing",
		w.object() + ".name",
		w.object() + ".key",
		w.object() + ".nums",
		w.object() + ".note",
		w.object() + ".opts",
		w.object() + ".share",
	}
	a, b := pick(w.generator, names), pick(w.generator, names)
	if w.chance(50) {
		return `"{{ ` + a + ` }}/{{` + b + `}}"`
	}
	return `f"` + pick(
		w.generator,
		[]string{
			"{" + a + "}-{" + b + "}",
			"{" + a + "!r}",
			"{" + a + ":>6}",
			"{ " + a + " }",
			"{" + a + ":{n}}",
			"{" + a + "!s:.3}",
		},
	) + `"`
}

func (w wild) dict(depth int) string {
	switch w.IntN(4) {
	case 0:
		return "d"
	case 1:
		return w.object() + ".opts"
	case 2:
		return `{"a": ` + w.expression(pick(w.generator, wildTypes), depth-1) + "}"
	}
	return "{'a': " + w.expression("int",
		depth-1) + `, "b": ` + w.expression(pick(w.generator, []string{"string", "dict", "int[]"}), depth-1) + "}"
}

func (w wild) constructor() string {
	typ := pick(w.generator, []string{"Base", "Base", "Sub", "Other"})
	if w.inside {
		typ = "Other"
	}
	args := []string{"key=" + w.expression("int", 1)}
	if w.chance(75) {
		args[0] = fmt.Sprint("key=", 4+w.IntN(5))
	}
	more := []string{
		"note=" + w.expression("string?", 1),
		"subs=" + w.expression("Base[]", 1),
		"others=" + w.expression("Other[]", 1),
		"nums=" + w.expression("int[]", 1),
		"name=" + w.expression("string", 1),
		"**d2",
		"level=" + w.expression("int", 1),
		"share=" + w.expression("float?", 1),
		"on=" + w.expression("bool", 1),
	}
	if !w.calm {
		more = append(more, "**"+w.expression("dict", 1), "next="+w.expression("Base", 1))
	}
	if typ == "Other" {
		args = []string{strings.TrimSuffix(strings.TrimPrefix(w.other(), "Other("), ")")}
		more = []string{"size=" + w.expression("int", 1), "likes=" + w.expression("Base[]", 1)}
	}
	for range w.IntN(3) {
		i := w.IntN(len(more))
		args = append(args, more[i])
		more = append(more[:i], more[i+1:]...)
	}
	return typ + "(" + strings.Join(args, ", ") + ")"
}

// other makes an instance that another one may own, and sets its owner if it must.
func (w wild) other() string {
	if w.owner != "1" {
		return "Other(id=" + w.expression("string", 1) + ")"
	}
	return "Other(id=" + w.expression("string", 1) + ", owner=" + w.expression("Base", 1) + ")"
}

func (w wild) call(typ string, depth int) string {
	sub := func(t string) string { return w.expression(t, depth-1) }
	name := func() string { return `"` + pick(w.generator, wildAttributes[:12]).name + `"` }
	var calls []string
	switch strings.TrimSuffix(typ, "?") {
	case "int":
		calls = []string{
			"p::add(" + sub("int") + ")",
			"p::add(b=" + sub("int") + ", a=" + sub("int") + ")",
			"p::size(" + sub(pick(w.generator, []string{"int[]", "dict", "Base[]"})) + ")",
			"p::key(" + w.object() + ")",
			"p::maybe(" + sub("int") + ")",
		}
		if w.chance(30) {
			calls = []string{"p::total(" + w.object() + `, "subs")`}
		}
	case "string":
		calls = []string{
			"p::join(" + sub("string") + ", sep=" + sub("string") + ")",
			"p::read(" + w.object() + ", " + name() + ")",
			"p::read(" + w.object() + ", " + name() + ", " + name() + ")",
		}
	case "float":
		calls = []string{"p::half(" + sub("int") + ")"}
	case "bool":
		calls = []string{"p::flip(" + sub("bool") + ")"}
	case "int[]":
		calls = []string{"p::spread(" + sub("int") + ")"}
	case "dict":
		calls = []string{"p::box(" + sub("int") + ", " + sub("string[]") + ")"}
	case "Base[]":
		calls = []string{
			"p::members(" + w.object() + `, "` + pick(w.generator, []string{"subs", "requires", "base", "prev"}) + `")`,
		}
	case "Base":
		calls = []string{"p::least(" + sub("Base[]") + ")"}
	default:
		calls = []string{
			"p::trace(" + w.object() + ", " + name() + ")",
			"p::read(" + w.object() + ", " + name() + ", " + name() + ")",
		}
	}
	if w.chance(4) {
		return "p::unknown()"
	}
	return pick(w.generator, calls)
}

func (w wild) leaf(typ string) string {
	o := w.object()
	switch typ {
	case "int":
		return pick(w.generator, []string{"n", "1", "2", "3", "-1", "0", o + ".key", o + ".level", "true", "o1.size"})
	case "float", "float?":
		return pick(w.generator, []string{"1.0", "2.5", "0.0", o + ".share", "-1.5"})
	case "string":
		return pick(w.generator, []string{"t", `"o1"`, `"a"`, `'b'`, o + ".name", "o1.id", `r"\d"`})
	case "string?":
		return pick(w.generator, []string{"null", "t", o + ".note", `"x"`})
	case "bool":
		return pick(w.generator, []string{"true", "false", o + ".on"})
	case "int[]":
		return pick(w.generator, []string{"l", "[]", o + ".nums", "[n, 7]"})
	case "string[]":
		return pick(w.generator, []string{"[t]", "s1.words", `["a", "b"]`})
	case "dict":
		return pick(w.generator, []string{"d", "{}", o + ".opts", "d2"})
	case "Base":
		if w.calm {
			return pick(w.generator, []string{o, o, "b2", "s1"})
		}
		return pick(w.generator, []string{o, o, "b2", "s1", o + ".next", "nothing", "o1.owner"})
	case "Base[]", "any[]":
		return pick(w.generator,
			[]string{o + ".subs", "[b1, b2]", "s1", "o1.likes", "[]", o + ".prev", o + ".requires"})
	case "Other":
		return pick(w.generator, []string{"o1", "o1", "o1", "o1"})
	case "Other[]":
		return pick(w.generator, []string{"o1", "[o1]", o + ".others"})
	}
	return pick(w.generator, []string{"null", "nothing", "n", o})
}
