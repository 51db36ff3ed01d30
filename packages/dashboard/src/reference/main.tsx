import '../style/index.css'
