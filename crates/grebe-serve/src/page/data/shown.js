// Texts and scales from the server, with the names of `grebe-view/src/page`. Places are parts of a width, heights
// parts of a lane from below.

/**
 * @typedef {[number, number, number]} Rgb
 * @typedef {{is_dark: boolean, background: Rgb, plot: Rgb, grid: Rgb, zero: Rgb, text: Rgb, dim: Rgb, gap: Rgb, cursor: Rgb, ramp: Rgb[]}} Theme
 *
 * @typedef {object} Widget words, a button, or a field
 * @property {string} words
 * @property {string} [title]
 * @property {any} [act] what to send back when it is pressed
 * @property {boolean} [is_off] it cannot be pressed now
 * @property {boolean} [is_on] whether what it switches is on
 * @property {Rgb} [color]
 * @property {any} [field] what is typed into it is sent as this
 * @property {string} [class]
 *
 * @typedef {[number, string][]} Labels places or heights, and words
 *
 * @typedef {object} Lane in the order of the picture's; the height of a count is `shift + gain * count`
 * @property {string} lane
 * @property {Widget} chip
 * @property {Rgb} color
 * @property {boolean} is_clipped
 * @property {number} gain
 * @property {number} shift
 * @property {[number, boolean][]} lines heights, and whether each is that of zero
 * @property {Labels} labels
 *
 * @typedef {object} SpectrumShown
 * @property {string} words
 * @property {Widget[]} controls
 * @property {[number, number]} zoom
 * @property {number} bottom
 * @property {number} top
 * @property {Labels} levels
 * @property {Labels} ticks
 * @property {{part: number, height: number, words: string, color: Rgb}[]} peaks
 * @property {[number, string][]} markers
 * @property {[number, string, Rgb][]} harmonics
 * @property {[number, Rgb][]} colors of channels
 * @property {string} empty
 * @typedef {{words: string, controls: Widget[], zoom: [number, number], detector: "highest" | "mean", bottom: number, top: number, ticks: Labels, ages: Labels, levels: Labels, marks: [[number, number, number, number], string, import("../draw/theme.js").Rgb | null][]}} WaterfallShown
 * @typedef {{words: string, controls: Widget[], place: [number, number, number, number] | null, across: Labels, upwards: Labels}} XyShown left, right, lower and upper edge of the cells
 *
 * @typedef {{name: string, columns: string[], rows: [Rgb, string[]][]}} Table
 * @typedef {{name: string, close: Widget, rows: Widget[][]}} Panel
 * @typedef {[string, string, string][]} Items names, values and tones
 *
 * @typedef {object} Shown
 * @property {number} done the newest deed
 * @property {number} asked the newest deed that led to another viewport
 * @property {string} view lines of what is set
 * @property {Lane[]} lanes
 * @property {boolean} is_overlay
 * @property {number} front
 * @property {boolean} is_sinc
 * @property {string | null} density
 * @property {Labels} ticks
 * @property {Labels} marks
 * @property {[number, number, string, import("../draw/theme.js").Rgb | null][]} notes
 * @property {number | null} trigger
 * @property {[string, number[]] | null} levels
 * @property {Labels} cursors
 * @property {[string, Labels] | null} value_cursors
 * @property {[number, number, string][]} lost
 * @property {number | null} anchor what a zoom leaves in its place; `null`: the pointer's
 * @property {number} shorter samples on the screen after a step of the time span
 * @property {number} longer
 * @property {string[]} empty what is there instead of traces
 * @property {Theme} theme
 * @property {{word: string, is_held: boolean}} state
 * @property {string} source
 * @property {string[]} sources
 * @property {number} source_shown
 * @property {string} stream
 * @property {Widget[]} tools
 * @property {Items} facts
 * @property {Items} losses
 * @property {string} notice
 * @property {string} exact
 * @property {Widget[]} trigger_row
 * @property {SpectrumShown | null} spectrum
 * @property {WaterfallShown | null} waterfall
 * @property {XyShown | null} xy
 * @property {boolean} has_overview
 * @property {Table[]} tables
 * @property {Panel[]} panels
 * @property {{title: string, rows: Widget[], marked: number} | null} list
 * @property {{question: string, text: string, refused: string} | null} prompt
 * @property {[string, [string, string][]][]} help
 * @property {[string, Rgb][]} hover
 */

export {};
